#include "cli/terminal/status_line.hpp"

#include <gpunn/clock.hpp>

#include <algorithm>

#include <unistd.h>

#include "common/system_call.hpp"

namespace gpunn::cli {

namespace {

constexpr std::string_view kEraseLine = "\r\x1b[2K";

}  // namespace

void write_to_stderr(std::string_view text) { write_all(STDERR_FILENO, text); }

StatusLine& StatusLine::of_stderr() {
  static StatusLine line;
  return line;
}

StatusLine::StatusLine() : terminal_(terminal_of(STDERR_FILENO)) {}

std::size_t StatusLine::width() const { return std::max<std::size_t>(columns_of(STDERR_FILENO), 2) - 1; }

void StatusLine::erase() {
  if (drawn_by_ != nullptr) write_to_stderr(kEraseLine);
  drawn_by_ = nullptr;
}

void StatusLine::draw(const void* owner, std::string_view line) {
  const std::lock_guard lock(mutex_);
  write_to_stderr(std::string(kEraseLine) + std::string(line));
  drawn_by_ = owner;
}

void StatusLine::print(std::string_view line) {
  const std::lock_guard lock(mutex_);
  erase();
  write_to_stderr(std::string(line) + "\n");
}

void StatusLine::print_stamped(std::string_view line) {
  print((terminal_.interactive ? "" : elapsed_stamp() + " ") + std::string(line));
}

void StatusLine::clear(const void* owner) {
  const std::lock_guard lock(mutex_);
  if (owner == nullptr || owner == drawn_by_) erase();
}

}  // namespace gpunn::cli
