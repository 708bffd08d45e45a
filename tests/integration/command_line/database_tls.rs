//! TLS to a real Postgres, by the parameters of `database.url`: at least what libpq verifies is verified, and a certificate
//! that is refused is named.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use sqlx::{Connection as _, Executor as _, PgConnection};

use super::process::{Invocation, run};
use crate::crash::database::{DurablePostgres, NAME};
use crate::documents::{Use, the_block};
use crate::peers::process::Household;
use crate::support::{patience, ports};

/// The recipes of the Postgres manual ("Creating Certificates"), and such as its readers make; for each the extensions
/// that the signed one gets: none makes it X.509 version 1.
const CERTIFICATES: &str = "
    openssl req -new -x509 -days 365 -nodes -text -out self.pem -keyout self.key -subj /CN=localhost
    authority() {
        openssl req -new -x509 -days 365 -nodes -out $1.pem -keyout $1.key -subj /CN=$1
    }
    signed() {
        openssl req -new -nodes -text -out $1.csr -keyout $1.key -subj /CN=localhost
        printf '%s\\n' \"$3\" > $1.ext
        test -z \"$3\" || set -- $1 $2 \"$3\" -extfile $1.ext
        name=$1; days=$2; shift 3
        openssl x509 -req -in $name.csr -text -days $days -CA authority.pem -CAkey authority.key -CAcreateserial -out $name.pem $@
    }
    authority authority
    authority other
    signed good 365 subjectAltName=DNS:localhost,IP:127.0.0.1
    signed version1 365 ''
    signed nameless 365 keyUsage=digitalSignature
    signed elsewhere 365 subjectAltName=DNS:db.example
    signed expired -1 subjectAltName=DNS:localhost,IP:127.0.0.1
    DOCUMENTED
    mv server.crt server.pem
    cat authority.pem other.pem > both.pem
    : > empty.pem
    printf -- '-----BEGIN CERTIFICATE-----\\nhunter2\\n' > cut.pem
";

/// It connects.
const CONNECTS: &str = "";

/// A running Postgres with TLS on, and files to verify it by.
struct Server {
    /// Its data, which the second process serves.
    cluster: DurablePostgres,
    household: Household,
    port: u16,
}

impl Server {
    async fn start() -> Self {
        let mut cluster = DurablePostgres::start().await;
        cluster.create_database().await;
        let (data, program) = (cluster.cluster(), cluster.programs().join("postgres"));
        cluster.kill().await;
        let household = Household::new();
        let server = Self {
            port: ports::reserve::<1>()[0],
            cluster,
            household,
        };
        let documented = the_block(Use::Certificate, "openssl req -x509 ");
        let documented = documented.replace("db.internal", "localhost");
        let script = CERTIFICATES.replace("DOCUMENTED", &documented);
        let script = format!("set -e; cd {}; {script}", server.folder().display());
        run("sh", &["-c", &script]).await;
        let hba = server.folder().join("pg_hba.conf");
        fs::write(
            &hba,
            "local all all trust\nhost all all 127.0.0.1/32 trust\n",
        )
        .unwrap();
        let owner = fs::metadata(&data).unwrap();
        for entry in fs::read_dir(server.folder()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "key") {
                chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
            }
        }
        let mut command = Command::new(program);
        command
            .uid(owner.uid())
            .gid(owner.gid())
            .current_dir("/")
            .arg("-D")
            .arg(&data)
            .arg("-k")
            .arg(data.parent().unwrap().join("socket"))
            .arg("-c")
            .arg(format!("hba_file={}", hba.display()))
            .args(["-c", "listen_addresses=127.0.0.1"])
            .arg(format!("--port={}", server.port));
        server.household.add("postgres", &mut command);
        let url = server.url("127.0.0.1", "sslmode=disable");
        patience::until("Postgres answers", async || {
            PgConnection::connect(&url).await.is_ok()
        })
        .await;
        server
    }

    fn folder(&self) -> &Path {
        self.household.folder()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    fn url(&self, host: &str, parameters: &str) -> String {
        let parameters = parameters.replace("DIR", &self.folder().display().to_string());
        format!(
            "postgres://postgres:hunter2@{host}:{}/{NAME}?{parameters}",
            self.port
        )
    }

    /// Shows another certificate from now on.
    async fn show(&self, name: &str) {
        let mut database = PgConnection::connect(&self.url("127.0.0.1", "sslmode=disable"))
            .await
            .unwrap();
        for (setting, file) in [("ssl_cert_file", "pem"), ("ssl_key_file", "key")] {
            let file = self.file(&format!("{name}.{file}"));
            let statement = format!("ALTER SYSTEM SET {setting} = '{}'", file.display());
            database
                .execute(sqlx::AssertSqlSafe(statement))
                .await
                .unwrap();
        }
        database.execute("ALTER SYSTEM SET ssl = on").await.unwrap();
        database.execute("SELECT pg_reload_conf()").await.unwrap();
        database.close().await.unwrap();
        patience::until("the certificate is shown", async || {
            let said = run("sh", &["-c", &format!(
                "openssl s_client -starttls postgres -connect 127.0.0.1:{} </dev/null 2>/dev/null | openssl x509 -noout -fingerprint; openssl x509 -noout -fingerprint -in {}",
                self.port, self.file(&format!("{name}.pem")).display(),
            )]).await;
            let lines: Vec<&str> = said.lines().collect();
            matches!(lines.as_slice(), [shown, wanted] if shown == wanted)
        })
        .await;
    }

    async fn is_as_said(
        &self,
        certificate: &str,
        host: &str,
        parameters: &str,
        variable: Option<(&str, &str)>,
        expected: &str,
    ) {
        let mut invocation =
            Invocation::new(["migrate"]).set("DATABASE__URL", self.url(host, parameters));
        if let Some((name, file)) = variable {
            let file = match file {
                "" => PathBuf::new(),
                file => self.file(file),
            };
            invocation = invocation.variable(name, file);
        }
        let finished = invocation.finish().await;
        let case = format!(
            "{certificate} at {host} with {parameters} {variable:?}: {}",
            finished.stderr
        );
        if expected == CONNECTS {
            assert!(finished.status.success(), "{case}");
        } else {
            finished.fails(1, &["database.url"]);
            assert!(finished.stderr.contains(expected), "{case}");
            assert!(!finished.stderr.contains("start Postgres"), "{case}");
        }
        assert!(!finished.stderr.contains("hunter2"), "{case}");
    }
}

#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table")]
async fn what_libpq_verifies_is_verified() {
    const STRANGE: &str = "is not from an authority in sslrootcert";
    const SELF_SIGNED: &str = "self-signed, an authority's and not a server's";
    const VERSION_1: &str = "X.509 version 1";
    const OTHER_NAME: &str = "is for another name";
    let server = Server::start().await;
    for (certificate, cases) in [
        (
            "good",
            &[
                ("sslmode=disable&sslrootcert=DIR/other.pem", CONNECTS),
                ("sslmode=prefer", CONNECTS),
                ("sslmode=require", CONNECTS),
                ("sslmode=require&sslrootcert=DIR/authority.pem", CONNECTS),
                ("sslmode=require&sslrootcert=DIR/both.pem", CONNECTS),
                ("sslmode=require&sslrootcert=DIR/other.pem", STRANGE),
                ("sslrootcert=DIR/other.pem&sslmode=require", STRANGE),
                ("ssl-mode=require&ssl-ca=DIR/other.pem", STRANGE),
                ("sslmode=require&ssl-root-cert=DIR/other.pem", STRANGE),
                ("sslmode=verify-ca&sslrootcert=DIR/authority.pem", CONNECTS),
                ("sslmode=verify-ca&sslrootcert=DIR/other.pem", STRANGE),
                (
                    "sslmode=verify-full&sslrootcert=DIR/authority.pem",
                    CONNECTS,
                ),
                ("sslmode=verify-full&sslrootcert=DIR/other.pem", STRANGE),
                ("sslmode=verify-full", STRANGE),
                ("sslmode=verify-full&sslrootcert=system", STRANGE),
                (
                    "sslmode=require&sslrootcert=system",
                    "needs sslmode=verify-full",
                ),
                (
                    "sslmode=verify-ca&sslrootcert=system",
                    "needs sslmode=verify-full",
                ),
                (
                    "sslrootcert=DIR/authority.pem",
                    "verifies nothing with sslmode=prefer",
                ),
                (
                    "sslmode=allow&sslrootcert=DIR/authority.pem",
                    "verifies nothing with sslmode=allow",
                ),
                (
                    "sslmode=require&sslrootcert=DIR/nosuch.pem",
                    "nosuch.pem: No such file",
                ),
                (
                    "sslmode=verify-full&sslrootcert=DIR/empty.pem",
                    "empty.pem: it holds no certificate",
                ),
                (
                    "sslmode=require&sslrootcert=DIR/authority.key",
                    "authority.key: it holds no certificate",
                ),
                (
                    "sslmode=verify-ca&sslrootcert=DIR/cut.pem",
                    "cut.pem: not certificates in PEM",
                ),
            ][..],
        ),
        (
            "self",
            &[
                ("sslmode=require", CONNECTS),
                ("sslmode=require&sslrootcert=DIR/self.pem", SELF_SIGNED),
                ("sslmode=verify-ca&sslrootcert=DIR/self.pem", SELF_SIGNED),
                ("sslmode=verify-full&sslrootcert=DIR/self.pem", SELF_SIGNED),
            ],
        ),
        (
            "version1",
            &[
                ("sslmode=prefer", VERSION_1),
                ("sslmode=require", VERSION_1),
                ("sslmode=verify-ca&sslrootcert=DIR/authority.pem", VERSION_1),
                (
                    "sslmode=verify-full&sslrootcert=DIR/authority.pem",
                    VERSION_1,
                ),
            ],
        ),
        (
            "nameless",
            &[
                ("sslmode=require", CONNECTS),
                (
                    "sslmode=verify-ca&sslrootcert=DIR/authority.pem",
                    OTHER_NAME,
                ),
                (
                    "sslmode=verify-full&sslrootcert=DIR/authority.pem",
                    OTHER_NAME,
                ),
            ],
        ),
        (
            "elsewhere",
            &[
                ("sslmode=require", CONNECTS),
                ("sslmode=require&sslrootcert=DIR/authority.pem", OTHER_NAME),
                (
                    "sslmode=verify-ca&sslrootcert=DIR/authority.pem",
                    OTHER_NAME,
                ),
                (
                    "sslmode=verify-full&sslrootcert=DIR/authority.pem",
                    OTHER_NAME,
                ),
            ],
        ),
        (
            "expired",
            &[
                ("sslmode=require", CONNECTS),
                (
                    "sslmode=require&sslrootcert=DIR/authority.pem",
                    "has expired",
                ),
                (
                    "sslmode=verify-full&sslrootcert=DIR/authority.pem",
                    "has expired",
                ),
            ],
        ),
    ] {
        server.show(certificate).await;
        for (parameters, expected) in cases {
            server
                .is_as_said(certificate, "127.0.0.1", parameters, None, expected)
                .await;
        }
    }
    server.show("good").await;
    for (variable, parameters, expected) in [
        (
            ("PGSSLROOTCERT", "authority.pem"),
            "sslmode=require",
            CONNECTS,
        ),
        (("PGSSLROOTCERT", "other.pem"), "sslmode=require", STRANGE),
        (("PGSSLROOTCERT", ""), "sslmode=prefer", CONNECTS),
        (("PGSSLROOTCERT", ""), "sslmode=require", CONNECTS),
        (("PGSSLROOTCERT", ""), "sslmode=verify-ca", STRANGE),
        (
            ("PGSSLROOTCERT", "other.pem"),
            "sslmode=require&sslrootcert=",
            CONNECTS,
        ),
    ] {
        server
            .is_as_said("good", "localhost", parameters, Some(variable), expected)
            .await;
    }
    // Whoever the machine trusts may sign for anybody, but not for this host.
    server.show("elsewhere").await;
    for parameters in [
        "sslmode=require&sslrootcert=DIR/other.pem",
        "sslmode=verify-ca&sslrootcert=DIR/other.pem",
        "sslmode=verify-ca",
        "sslmode=verify-full&sslrootcert=DIR/other.pem",
        "sslmode=verify-full&sslrootcert=system",
    ] {
        let machine = Some(("SSL_CERT_FILE", "authority.pem"));
        server
            .is_as_said("elsewhere", "localhost", parameters, machine, OTHER_NAME)
            .await;
    }
    server.show("good").await;
    let full = "sslmode=verify-full&sslrootcert=DIR/authority.pem";
    server
        .is_as_said("good", "localhost", full, None, CONNECTS)
        .await;
    // What the documents have an operator make.
    server.show("server").await;
    let full = "sslmode=verify-full&sslrootcert=DIR/postgres-ca.pem";
    for (host, expected) in [("localhost", CONNECTS), ("127.0.0.1", OTHER_NAME)] {
        server
            .is_as_said("documented", host, full, None, expected)
            .await;
    }
    drop(server.cluster);
}
