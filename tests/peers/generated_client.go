// Sends a message with the client that openapi-generator made for Go, and finds it in the log.
// Environment: MAILGATE_URL, MAILGATE_SEND_KEY, MAILGATE_API_SECRET, MAILGATE_PK.
package main

import (
	"context"
	"fmt"
	"log"
	"os"

	mailgate "github.com/mailgate/client"
)

func main() {
	configuration := mailgate.NewConfiguration()
	configuration.Servers = mailgate.ServerConfigurations{{URL: os.Getenv("MAILGATE_URL")}}
	client := mailgate.NewAPIClient(configuration)
	keys := map[string]mailgate.APIKey{
		"send_key":   {Key: os.Getenv("MAILGATE_SEND_KEY")},
		"api_secret": {Key: os.Getenv("MAILGATE_API_SECRET")},
	}
	ctx := context.WithValue(context.Background(), mailgate.ContextAPIKeys, keys)
	pushableKey := os.Getenv("MAILGATE_PK")

	message := mailgate.NewSendRequest(pushableKey, "From Go", "bob@example.com")
	message.SetBody("Hello")
	sent, response, err := client.SendAPI.Send(ctx).SendRequest(*message).IdempotencyKey("go-1").Execute()
	must(err, "send")
	if response.StatusCode != 200 || response.Header.Get("RateLimit") == "" {
		log.Fatal("send: ", response.Status, response.Header)
	}

	logs, _, err := client.LogsAPI.ListLogs(ctx).Status("sent").Limit(1).Execute()
	must(err, "list")
	if logs.Total.Get() == nil || *logs.Total.Get() < 1 || logs.Logs[0].Id != sent.LogId {
		log.Fatal("the message isn't the newest in the log: ", logs)
	}
	detail, _, err := client.LogsAPI.ShowLog(ctx, sent.LogId).Execute()
	must(err, "read")
	if detail.Subject != "From Go" || detail.Status != string(mailgate.SENT) || len(detail.Attempts) != 1 {
		log.Fatal("the log has another message: ", detail)
	}

	request := mailgate.NewCreateWebhookRequest([]mailgate.EventName{mailgate.EMAIL_SENT}, "https://app.example/hook")
	created, _, err := client.WebhooksAPI.CreateWebhook(ctx, pushableKey).CreateWebhookRequest(*request).Execute()
	must(err, "create a webhook")
	hooks, _, err := client.WebhooksAPI.ListWebhooks(ctx, pushableKey).Execute()
	must(err, "list webhooks")
	if len(hooks.Webhooks) != 1 || hooks.Webhooks[0].Id != created.Id {
		log.Fatal("the webhook isn't listed: ", hooks)
	}
	_, err = client.WebhooksAPI.DeleteWebhook(ctx, pushableKey, created.Id).Execute()
	must(err, "delete a webhook")
	fmt.Println(sent.LogId)
}

func must(err error, what string) {
	if err != nil {
		log.Fatal(what, ": ", err)
	}
}
