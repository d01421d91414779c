use strict;
use warnings;
use Redis;

my ($user, $message) = @ARGV;
my ($headroom, $reply, $unsure);    # unsure: an attempt of this run may have counted the message
for my $attempt (1 .. 3) {
    $reply = eval {
        $headroom //= Redis->new(server => '127.0.0.1:6747', cnx_timeout => 1, read_timeout => 3, write_timeout => 3);
        $headroom->CONSUME($user, "key=$message");
    };
    last if defined $reply;
    my $answered = $@ =~ /^\[CONSUME\] ([A-Z]+) /;
    die "failed: $@" if $attempt == 3 or $answered && $1 !~ /^(UNKNOWN|UNAVAILABLE|OVERLOADED|DRAINING)$/;
    $unsure ||= !$answered || $1 eq 'UNKNOWN';
    undef $headroom unless $answered;    # its answer may still come, and would be taken for the next one's
    select undef, undef, undef, $attempt / 10;
}
my %fields;
while ($reply =~ / ([a-z_]+)=(?:"((?:[^"\\]|\\.)*)"|(\S+))/g) {
    $fields{$1} = $2 // $3;
    $fields{$1} =~ s/\\(.)/$1/g;
}
print $fields{replayed} && !$unsure ? "sent before\n" : "send it\n" if $reply =~ /^ALLOWED /;
print $fields{banner} // '', "\n";
