# gem install webrick
require "json"
require "openssl"
require "webrick"

SECRET = ENV.fetch("MAILGATE_WEBHOOK_SECRET")
KEY = SECRET.start_with?("whsec_") ? SECRET.delete_prefix("whsec_").unpack1("m0") : SECRET

# The event, or nil when it isn't Mailgate that called.
def verified(body, id, timestamp, signatures)
  return unless id && timestamp.to_s.match?(/\A\d+\z/) && (Time.now.to_i - timestamp.to_i).abs <= 300

  expected = "v1,#{[OpenSSL::HMAC.digest("SHA256", KEY, "#{id}.#{timestamp}.#{body}")].pack("m0")}"
  JSON.parse(body) if signatures.to_s.split.any? { |signature| OpenSSL.secure_compare(signature, expected) }
end

server = WEBrick::HTTPServer.new(BindAddress: "127.0.0.1", Port: ENV.fetch("PORT", "9000").to_i, AccessLog: [])
server.mount_proc("/") do |request, response|
  id = request["webhook-id"]
  event = verified(request.body.to_s, id, request["webhook-timestamp"], request["webhook-signature"])
  warn "#{id} #{event["event"]} #{event["data"]}" if event
  response.status = event ? 204 : 400
end
trap("TERM") { server.shutdown }
server.start
