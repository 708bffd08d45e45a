# Who Perl's Email::Address::XS (Dovecot's parser) says a message is from.
#
# stdin: a JSON list of From fields, unfolded   stdout: per field {way: [address]}
use strict;
use warnings;
use Email::Address::XS;
use JSON::PP;

my $json = JSON::PP->new->utf8;
my @shown;
for my $field (@{ $json->decode(do { local $/; <STDIN> }) }) {
    utf8::encode(my $octets = $field);
    my @list = Email::Address::XS->parse($octets);
    push @shown, { 'Email::Address::XS' => [ grep { defined } map { $_->address } @list ] };
}
print $json->encode(\@shown);
