#include "common/system_call.hpp"

#include <system_error>

#include <poll.h>
#include <unistd.h>

namespace gpunn {

std::string reason_of(int error) {
  std::string text = std::generic_category().message(error);
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return text + "; make room, or write elsewhere";
    case EFBIG:
      return text + ": more than the file system or `ulimit -f` allows";
    case EMFILE:
      return text + ": raise `ulimit -n`";
    default:
      return text;
  }
}

bool FileDescriptor::close() {
  if (descriptor_ < 0) return true;
  // Linux has closed it even where a signal came: to call again would close another's.
  return ::close(std::exchange(descriptor_, -1)) == 0 || errno == EINTR;
}

bool write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = retried([&] { return ::write(descriptor, text.data(), text.size()); });
    if (put < 0 && errno == EAGAIN) {
      pollfd ready{.fd = descriptor, .events = POLLOUT, .revents = 0};
      if (retried([&] { return ::poll(&ready, 1, -1); }) < 0) return false;
      continue;
    }
    if (put == 0) errno = EIO;
    if (put <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

std::ptrdiff_t read_all(int descriptor, std::span<char> out) {
  std::size_t used = 0;
  while (used < out.size()) {
    const ssize_t got = retried([&] { return ::read(descriptor, out.data() + used, out.size() - used); });
    if (got < 0) return -1;
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  return static_cast<std::ptrdiff_t>(used);
}

}  // namespace gpunn
