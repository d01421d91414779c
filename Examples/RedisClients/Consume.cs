using System.Text.RegularExpressions;
using StackExchange.Redis;

var (user, message) = (args[0], args[1]);
await using var connection = await ConnectionMultiplexer.ConnectAsync(new ConfigurationOptions
{
    EndPoints = { "127.0.0.1:6747" }, ConnectTimeout = 1000, AsyncTimeout = 3000, AbortOnConnectFail = false,
});
var reply = "";
var unsure = false; // an attempt of this run may have counted the message
for (var attempt = 1; reply == ""; attempt++)
{
    try
    {
        reply = (string?)await connection.GetDatabase().ExecuteAsync("CONSUME", user, $"key={message}") ?? "";
    }
    catch (Exception error) when (attempt < 3 && Passes(error))
    {
        unsure |= error is not RedisServerException || error.Message.StartsWith("UNKNOWN ");
        await Task.Delay(attempt * 100);
    }
}
var fields = new Dictionary<string, string>();
foreach (Match field in Regex.Matches(reply, @" ([a-z_]+)=(?:""((?:[^""\\]|\\.)*)""|(\S+))"))
{
    var quoted = Regex.Replace(field.Groups[2].Value, @"\\(.)", "$1");
    fields[field.Groups[1].Value] = field.Groups[3].Success ? field.Groups[3].Value : quoted;
}
var before = fields.ContainsKey("replayed") && !unsure;
if (reply.StartsWith("ALLOWED ")) Console.WriteLine(before ? "sent before" : "send it");
Console.WriteLine(fields.GetValueOrDefault("banner", ""));

static bool Passes(Exception error) => error switch
{
    RedisServerException => Regex.IsMatch(error.Message, "^(UNKNOWN|UNAVAILABLE|OVERLOADED|DRAINING) "),
    RedisConnectionException or RedisTimeoutException => true,
    _ => false,
};
