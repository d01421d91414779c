local redis, sleep = require "redis", require "socket".sleep
redis.commands.consume = redis.command("CONSUME")

local user, message = arg[1], arg[2]
local headroom, reply, unsure -- unsure: an attempt of this run may have counted the message
for attempt = 1, 3 do
    local answered, answer = pcall(function()
        headroom = headroom or redis.connect { host = "127.0.0.1", port = 6747, timeout = 3 }
        return headroom:consume(user, "key=" .. message)
    end)
    if answered then reply = answer break end
    local code = answer:match("redis error: (%u+) ")
    local passes = { UNKNOWN = true, UNAVAILABLE = true, OVERLOADED = true, DRAINING = true }
    if attempt == 3 or code and not passes[code] then error("failed: " .. answer, 0) end
    unsure = unsure or not code or code == "UNKNOWN"
    if not code then headroom = nil end -- an answer that comes late would be taken for the next one's
    sleep(attempt / 10)
end

local fields, at = {}, reply:find(" ")
local plain = reply:gsub("\\(.)", { ['"'] = "\1", ["\\"] = "\2" }) -- no answer has control characters
while at do
    local name, quote, start = plain:match('^ ([%l_]+)=("?)()', at)
    local value, stop = plain:match(quote == '"' and '^([^"]*)"()' or "^(%S*)()", start)
    fields[name], at = value:gsub("[\1\2]", { ["\1"] = '"', ["\2"] = "\\" }), plain:find(" ", stop)
end
if reply:find("^ALLOWED ") then print(fields.replayed and not unsure and "sent before" or "send it") end
print(fields.banner or "")
