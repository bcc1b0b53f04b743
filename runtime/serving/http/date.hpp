#pragma once

#include <string>

namespace gpunn::serving {

// The present time, UTC. The names of days and months do not depend on the locale.
std::string http_date();  // as RFC 9110 wants it: "Sun, 06 Nov 1994 08:49:37 GMT"
std::string log_date();   // as web servers write it: "06/Nov/1994:08:49:37 +0000"

}  // namespace gpunn::serving
