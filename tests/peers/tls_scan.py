"""What sslyze says of the TLS of an SMTP server.

usage: tls_scan.py HOST PORT starttls|implicit CA_FILE

stdout: JSON with the cipher suites that the server takes by protocol, its curves, whether it takes early data, and
where it isn't as Mozilla's intermediate profile has it: protocols, suites, curves, the certificate and its trust,
known weaknesses.
"""

import json
import pathlib
import sys

from sslyze import (
    CertificateInfoExtraArgument,
    ProtocolWithOpportunisticTlsEnum,
    ScanCommand,
    ScanCommandsExtraArguments,
    Scanner,
    ServerNetworkConfiguration,
    ServerNetworkLocation,
    ServerScanRequest,
)
from sslyze.mozilla_tls_profile.tls_config_checker import (
    SCAN_COMMANDS_NEEDED_BY_MOZILLA_CHECKER,
    MozillaTlsConfiguration,
    ServerNotCompliantWithTlsConfiguration,
    TlsConfigurationEnum,
    check_server_against_tls_configuration,
)

host, port, tls, ca_file = sys.argv[1:]
starttls = ProtocolWithOpportunisticTlsEnum.SMTP if tls == "starttls" else None
scanner = Scanner(per_server_concurrent_connections_limit=4)
scanner.queue_scans(
    [
        ServerScanRequest(
            server_location=ServerNetworkLocation(hostname=host, port=int(port), ip_address="127.0.0.1"),
            network_configuration=ServerNetworkConfiguration(
                tls_server_name_indication=host,
                tls_opportunistic_encryption=starttls,
                network_timeout=20,
            ),
            scan_commands=SCAN_COMMANDS_NEEDED_BY_MOZILLA_CHECKER | {ScanCommand.TLS_1_3_EARLY_DATA},
            scan_commands_extra_arguments=ScanCommandsExtraArguments(
                certificate_info=CertificateInfoExtraArgument(custom_ca_file=pathlib.Path(ca_file)),
            ),
        )
    ]
)
(server,) = scanner.get_results()
if server.scan_result is None:
    sys.exit(f"the server can't be scanned: {server.connectivity_error_trace}")
profile = MozillaTlsConfiguration.get(TlsConfigurationEnum.MOZILLA_INTERMEDIATE)
issues = {}
try:
    # Raises another error where a part of the scan failed.
    check_server_against_tls_configuration(server, profile)
except ServerNotCompliantWithTlsConfiguration as error:
    # How long a certificate lives is its owner's matter.
    issues = {name: issue for name, issue in error.issues.items() if name != "maximum_certificate_lifespan"}


def found(name):
    return getattr(server.scan_result, name).result


suites = {
    name: [accepted.cipher_suite.name for accepted in found(f"{name}_cipher_suites").accepted_cipher_suites]
    for name in ("ssl_2_0", "ssl_3_0", "tls_1_0", "tls_1_1", "tls_1_2", "tls_1_3")
}
json.dump(
    {
        "suites": {name: taken for name, taken in suites.items() if taken},
        "curves": sorted(curve.name for curve in found("elliptic_curves").supported_curves),
        "early_data": found("tls_1_3_early_data").supports_early_data,
        "issues": issues,
    },
    sys.stdout,
)
