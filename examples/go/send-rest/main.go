package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"
)

type Answer struct {
	Status string `json:"status"`
	LogID  string `json:"log_id"`
}

func setting(name string) string {
	value := os.Getenv(name)
	if value == "" {
		log.Fatalf("%s is not set", name)
	}
	return value
}

func send(key string, fields map[string]any) (answer Answer, err error) {
	fields["pk"] = setting("MAILGATE_PK")
	body, err := json.Marshal(fields)
	if err != nil {
		return answer, err
	}
	for attempt := 0; attempt < 6; attempt++ {
		wait := time.Second << attempt
		status, header, text, err := post(key, body)
		switch {
		case err != nil: // no answer came, or half of one
		case status == 200 || status == 202:
			return answer, json.Unmarshal(text, &answer)
		case status == 409 || status == 429 || status == 500 || status == 503 || status == 504:
			if seconds, err := strconv.Atoi(header.Get("Retry-After")); err == nil {
				wait = time.Duration(seconds) * time.Second
			}
		default:
			return answer, fmt.Errorf("refused, don't ask again: %d %s", status, text)
		}
		time.Sleep(wait)
	}
	return answer, fmt.Errorf("no answer: ask again later, with the same fields and the key %s", key)
}

func post(key string, body []byte) (int, http.Header, []byte, error) {
	request, err := http.NewRequest("POST", setting("MAILGATE_URL")+"/send", bytes.NewReader(body))
	if err != nil {
		return 0, nil, nil, err
	}
	request.Header.Set("X-Send-Key", setting("MAILGATE_SEND_KEY"))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	client := http.Client{Timeout: time.Minute}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, text, err
}

func main() {
	// One key for each message: keep it with the message until there is an answer.
	key := make([]byte, 16)
	if _, err := rand.Read(key); err != nil {
		log.Fatal(err)
	}
	message := map[string]any{"to": "bob@example.com", "subject": "Hello", "body": "It works."}
	answer, err := send(hex.EncodeToString(key), message)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Status, answer.LogID) // sent; or failed_temp, and Mailgate tries again by itself
}
