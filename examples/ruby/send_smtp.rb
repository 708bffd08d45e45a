require "net/smtp"
require "securerandom"
require "time"

FROM = ENV.fetch("MAILGATE_FROM") # the address of a connected mailbox: it chooses the mailbox
FAILURES = [Net::ProtocolError, SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError]

# Sends the same bytes each time, so that the Idempotency-Key in them holds.
def submit(message, recipients)
  6.times do |attempt|
    smtp = Net::SMTP.new(ENV.fetch("MAILGATE_SMTP_HOST"), ENV.fetch("MAILGATE_SMTP_PORT", "587").to_i)
    smtp.enable_starttls
    smtp.read_timeout = 600
    smtp.start("localhost", ENV.fetch("MAILGATE_APP_ID"), ENV.fetch("MAILGATE_SEND_KEY"), :plain) do
      return smtp.send_message(message, FROM, recipients).string
    end
  rescue *FAILURES => error
    raise if error.message.start_with?("5") # refused: the same message would be refused again

    sleep 2**attempt
  end
  raise "not taken yet: submit the same bytes again later"
end

message = <<~MAIL
  From: #{FROM}
  To: bob@example.com
  Subject: Hello
  Date: #{Time.now.rfc2822}
  Message-ID: <#{SecureRandom.uuid}@#{FROM.split("@").last}>
  Idempotency-Key: #{SecureRandom.uuid}
  MIME-Version: 1.0
  Content-Type: text/plain; charset=utf-8

  It works.
MAIL
puts submit(message, ["bob@example.com"]) # 250 2.0.0 log_… sent via …
