import JWTKit
import Usage
import X509
