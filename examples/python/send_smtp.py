import os, smtplib, ssl, time, uuid
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

HOST, APP_ID, SEND_KEY, FROM = (
    os.environ[name] for name in ("MAILGATE_SMTP_HOST", "MAILGATE_APP_ID", "MAILGATE_SEND_KEY", "MAILGATE_FROM")
)
PORT = int(os.environ.get("MAILGATE_SMTP_PORT", 587))


def submit(message):
    """Sends the same bytes each time, so that the Idempotency-Key in them holds."""
    for attempt in range(6):
        try:
            with smtplib.SMTP(HOST, PORT, timeout=600) as smtp:
                smtp.starttls(context=ssl.create_default_context())
                smtp.login(APP_ID, SEND_KEY)
                smtp.send_message(message)
                return
        except smtplib.SMTPRecipientsRefused:
            raise
        except smtplib.SMTPResponseException as error:
            if error.smtp_code >= 500:
                raise  # refused: the same message would be refused again
        except OSError:
            pass  # the connection broke: it may have been sent, or not
        time.sleep(2**attempt)
    raise TimeoutError("not taken yet: submit the same message again later")


message = EmailMessage()
message["From"] = FROM  # the address of a connected mailbox: it chooses the mailbox
message["To"] = "bob@example.com"
message["Subject"] = "Hello"
message["Date"] = formatdate()
message["Message-ID"] = make_msgid(domain=FROM.rpartition("@")[2])
message["Idempotency-Key"] = str(uuid.uuid4())
message.set_content("It works.")
submit(message)
print("sent or stored")
