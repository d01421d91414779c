import java.nio.charset.StandardCharsets;
import java.util.*;
import java.util.regex.*;
import redis.clients.jedis.*;
import redis.clients.jedis.commands.ProtocolCommand;
import redis.clients.jedis.exceptions.*;

public class Consume {
    static final ProtocolCommand CONSUME = () -> "CONSUME".getBytes(StandardCharsets.UTF_8);
    static final List<String> PASSES = List.of("UNKNOWN", "UNAVAILABLE", "OVERLOADED", "DRAINING");

    static boolean unsure = false; // an attempt of this run may have counted the message

    static String consume(UnifiedJedis headroom, String user, String message) throws InterruptedException {
        for (int attempt = 1; ; attempt++) {
            try {
                byte[] reply = (byte[]) headroom.sendCommand(CONSUME, user, "key=" + message);
                return new String(reply, StandardCharsets.UTF_8);
            } catch (JedisException error) { // JedisDataException: the service answered; the others: no answer came
                boolean answered = error instanceof JedisDataException;
                if (attempt == 3 || answered && !PASSES.contains(error.getMessage().split(" ")[0])) throw error;
                unsure |= !answered || error.getMessage().startsWith("UNKNOWN ");
            }
            Thread.sleep(attempt * 100);
        }
    }

    public static void main(String[] arguments) throws InterruptedException {
        var settings = DefaultJedisClientConfig.builder().connectionTimeoutMillis(1000).socketTimeoutMillis(3000).build();
        try (var headroom = new JedisPooled(new HostAndPort("127.0.0.1", 6747), settings)) {
            String reply = consume(headroom, arguments[0], arguments[1]);
            var fields = new HashMap<String, String>();
            var field = Pattern.compile(" ([a-z_]+)=(?:\"((?:[^\"\\\\]|\\\\.)*)\"|(\\S+))").matcher(reply);
            while (field.find()) {
                String quoted = field.group(2);
                fields.put(field.group(1), quoted == null ? field.group(3) : quoted.replaceAll("\\\\(.)", "$1"));
            }
            boolean before = fields.containsKey("replayed") && !unsure;
            if (reply.startsWith("ALLOWED ")) System.out.println(before ? "sent before" : "send it");
            System.out.println(fields.getOrDefault("banner", ""));
        } catch (JedisException error) {
            System.err.println("failed: " + error.getMessage());
            System.exit(1);
        }
    }
}
