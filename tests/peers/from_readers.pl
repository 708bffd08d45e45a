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
    my @shown_here = grep { defined } map { $_->address } Email::Address::XS->parse($octets);
    # It gives octets back, and JSON has characters. What is no UTF-8 stays as it is.
    utf8::decode($_) for @shown_here;
    push @shown, { 'Email::Address::XS' => \@shown_here };
}
print $json->encode(\@shown);
