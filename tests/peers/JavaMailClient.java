// Submits one message with JavaMail, in chunks (BDAT) where it is large: in chunks, too, JavaMail doubles the dot at the
// beginning of a line, so that small messages go by DATA.
//
//   java JavaMailClient.java HOST PORT starttls|implicit CA_FILE LOGIN|PLAIN FROM TO...
//   environment: SMTP_USERNAME, SMTP_PASSWORD   stdin: the message
//
// The exit status is 0 when the message was accepted for every recipient; the dialogue goes to stderr.
import java.io.ByteArrayInputStream;
import java.io.FileInputStream;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.util.Arrays;
import java.util.Properties;
import javax.mail.MessagingException;
import javax.mail.Session;
import javax.mail.Transport;
import javax.mail.internet.InternetAddress;
import javax.mail.internet.MimeMessage;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

public class JavaMailClient {
    private static final String CHUNK = "8192";
    private static final int LARGE = 100_000;
    private static final String PATIENCE = "20000";

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("mail.smtp.host", arguments[0]);
        settings.put("mail.smtp.port", arguments[1]);
        boolean implicit = arguments[2].equals("implicit");
        settings.put(implicit ? "mail.smtp.ssl.enable" : "mail.smtp.starttls.enable", "true");
        settings.put("mail.smtp.starttls.required", String.valueOf(!implicit));
        settings.put("mail.smtp.ssl.socketFactory", trusting(arguments[3]).getSocketFactory());
        settings.put("mail.smtp.ssl.checkserveridentity", "true");
        settings.put("mail.smtp.auth", "true");
        settings.put("mail.smtp.auth.mechanisms", arguments[4]);
        settings.put("mail.smtp.from", arguments[5]);
        byte[] raw = System.in.readAllBytes();
        if (raw.length > LARGE) {
            settings.put("mail.smtp.chunksize", CHUNK);
        }
        settings.put("mail.smtp.allow8bitmime", "true");
        settings.put("mail.smtp.connectiontimeout", PATIENCE);
        settings.put("mail.smtp.timeout", PATIENCE);
        Session session = Session.getInstance(settings);
        session.setDebugOut(System.err);
        session.setDebug(true);

        MimeMessage message = new MimeMessage(session, new ByteArrayInputStream(raw));
        InternetAddress[] recipients = new InternetAddress[arguments.length - 6];
        for (int number = 0; number < recipients.length; number++) {
            recipients[number] = new InternetAddress(arguments[number + 6]);
        }
        try (Transport transport = session.getTransport("smtp")) {
            transport.connect(System.getenv("SMTP_USERNAME"), System.getenv("SMTP_PASSWORD"));
            transport.sendMessage(message, recipients);
        } catch (MessagingException error) {
            System.err.println(error + Arrays.toString(error.getStackTrace()));
            System.exit(1);
        }
    }

    private static SSLContext trusting(String file) throws Exception {
        KeyStore trusted = KeyStore.getInstance(KeyStore.getDefaultType());
        trusted.load(null, null);
        try (FileInputStream input = new FileInputStream(file)) {
            int number = 0;
            for (Certificate it : CertificateFactory.getInstance("X.509").generateCertificates(input)) {
                trusted.setCertificateEntry(String.valueOf(number++), it);
            }
        }
        TrustManagerFactory managers =
            TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        managers.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, managers.getTrustManagers(), null);
        return context;
    }
}
