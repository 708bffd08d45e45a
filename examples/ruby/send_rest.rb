require "json"
require "net/http"
require "securerandom"

ENDPOINT = URI("#{ENV.fetch("MAILGATE_URL")}/send")
BROKEN = [SystemCallError, SocketError, IOError, Timeout::Error, OpenSSL::SSL::SSLError, Net::HTTPBadResponse]

def submit(key, fields)
  body = JSON.generate({ pk: ENV.fetch("MAILGATE_PK"), **fields })
  headers = {
    "X-Send-Key" => ENV.fetch("MAILGATE_SEND_KEY"),
    "Content-Type" => "application/json",
    "Idempotency-Key" => key
  }
  6.times do |attempt|
    wait = 2**attempt
    begin
      response = Net::HTTP.post(ENDPOINT, body, headers)
      case response.code.to_i
      when 200, 202 then return JSON.parse(response.body)
      when 409, 429, 500, 503, 504 then wait = Integer(response["Retry-After"], exception: false) || wait
      else raise "refused, don't ask again: #{response.code} #{response.body}"
      end
    rescue *BROKEN
      # no answer came, or half of one
    end
    sleep wait
  end
  raise "no answer: ask again later, with the same fields and the key #{key}"
end

# One key for each message: keep it with the message until there is an answer.
answer = submit(SecureRandom.uuid, { to: "bob@example.com", subject: "Hello", body: "It works." })
puts "#{answer["status"]} #{answer["log_id"]}" # sent; or failed_temp, and Mailgate tries again by itself
