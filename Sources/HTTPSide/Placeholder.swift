import Hummingbird
import HummingbirdTLS
import Mustache
import Usage
