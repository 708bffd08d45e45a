package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log"
	"net/smtp"
	"net/textproto"
	"os"
	"strings"
	"time"
)

func setting(name, otherwise string) string {
	value := os.Getenv(name)
	if value == "" {
		value = otherwise
	}
	if value == "" {
		log.Fatalf("%s is not set", name)
	}
	return value
}

// Sends the same bytes each time, so that the Idempotency-Key in them holds.
func submit(from string, to []string, message []byte) (err error) {
	host, port := setting("MAILGATE_SMTP_HOST", ""), setting("MAILGATE_SMTP_PORT", "587")
	auth := smtp.PlainAuth("", setting("MAILGATE_APP_ID", ""), setting("MAILGATE_SEND_KEY", ""), host)
	for attempt := 0; attempt < 6; attempt++ {
		err = smtp.SendMail(host+":"+port, auth, from, to, message) // by STARTTLS
		var reply *textproto.Error
		if err == nil || errors.As(err, &reply) && reply.Code >= 500 {
			return err // refused: the same message would be refused again
		}
		time.Sleep(time.Second << attempt)
	}
	return fmt.Errorf("not taken yet, submit the same bytes again later: %w", err)
}

func main() {
	from := setting("MAILGATE_FROM", "") // the address of a connected mailbox: it chooses the mailbox
	name := make([]byte, 16)
	if _, err := rand.Read(name); err != nil {
		log.Fatal(err)
	}
	lines := []string{
		"From: " + from,
		"To: bob@example.com",
		"Subject: Hello",
		"Date: " + time.Now().Format(time.RFC1123Z),
		fmt.Sprintf("Message-ID: <%x@%s>", name, from[strings.LastIndex(from, "@")+1:]),
		fmt.Sprintf("Idempotency-Key: %x", name),
		"MIME-Version: 1.0",
		"Content-Type: text/plain; charset=utf-8",
		"",
		"It works.",
		"",
	}
	if err := submit(from, []string{"bob@example.com"}, []byte(strings.Join(lines, "\r\n"))); err != nil {
		log.Fatal(err)
	}
	fmt.Println("sent or stored")
}
