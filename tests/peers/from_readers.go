// Who Go's net/mail says a message is from.
//
// stdin: a JSON list of From fields, as they stand behind the colon   stdout: per field {way: [address]}
package main

import (
	"encoding/json"
	"log"
	"net/mail"
	"os"
	"strings"
)

func main() {
	var fields []string
	if err := json.NewDecoder(os.Stdin).Decode(&fields); err != nil {
		log.Fatal(err)
	}
	shown := []map[string][]string{}
	for _, field := range fields {
		addresses := []string{}
		message, err := mail.ReadMessage(strings.NewReader("From:" + field + "\r\n\r\n"))
		if err == nil {
			// What it can't read it shows to nobody.
			list, _ := message.Header.AddressList("From")
			for _, address := range list {
				addresses = append(addresses, address.Address)
			}
		}
		shown = append(shown, map[string][]string{"net/mail": addresses})
	}
	if err := json.NewEncoder(os.Stdout).Encode(shown); err != nil {
		log.Fatal(err)
	}
}
