require "redis"

user, message = ARGV
headroom = Redis.new(host: "127.0.0.1", port: 6747, connect_timeout: 1, timeout: 3, reconnect_attempts: 0)
attempt, unsure = 1, false # unsure: an attempt of this run may have counted the message
begin
  reply = headroom.call("CONSUME", user, "key=#{message}")
rescue Redis::BaseError => error
  lost = error.is_a?(Redis::BaseConnectionError)
  passes = lost || error.message.match?(/^(UNKNOWN|UNAVAILABLE|OVERLOADED|DRAINING) /)
  abort "failed: #{error.message}" if attempt == 3 || !passes
  unsure ||= lost || error.message.start_with?("UNKNOWN ")
  sleep attempt / 10.0
  attempt += 1
  retry
end
fields = reply.scan(/ ([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))/).to_h do |name, quoted, bare|
  [name, bare || quoted.gsub(/\\(.)/, '\1')]
end
puts fields["replayed"] && !unsure ? "sent before" : "send it" if reply.start_with?("ALLOWED ")
puts fields["banner"]
