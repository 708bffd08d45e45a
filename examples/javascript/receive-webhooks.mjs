// npm install standardwebhooks
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const secret = process.env.MAILGATE_WEBHOOK_SECRET;
if (!secret) throw new Error("MAILGATE_WEBHOOK_SECRET is not set");
const webhook = secret.startsWith("whsec_")
  ? new Webhook(secret)
  : new Webhook(Buffer.from(secret), { format: "raw" });

const server = createServer(async (request, response) => {
  let status = 400;
  try {
    const pieces = [];
    for await (const piece of request) pieces.push(piece);
    const event = webhook.verify(Buffer.concat(pieces), request.headers); // throws
    console.log(request.headers["webhook-id"], event.event, event.data);
    status = 204;
  } catch (error) {
    console.error(`refused: ${error.message}`);
  }
  response.writeHead(status).end();
});
server.listen(Number(process.env.PORT ?? 9000), "127.0.0.1");
