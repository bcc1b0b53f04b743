#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "cli/terminal.hpp"

namespace gpunn::cli {

// Writes to stderr, all or what goes. A terminal that is gone, a closed pipe or a full disk behind it ends nothing:
// no message is worth a training.
void write_to_stderr(std::string_view text);

// The unfinished line at the bottom of a terminal that is drawn anew again and again, and the lines above it. There is
// one stderr, hence one of these; any thread may use it.
class StatusLine {
 public:
  static StatusLine& of_stderr();

  const Terminal& terminal() const { return terminal_; }
  // Columns for a line to be drawn: one is left free, as some terminals wrap when the last one is written to.
  std::size_t width() const;
  // In place of what was drawn before. `owner` names who draws.
  void draw(const void* owner, std::string_view line);
  // A line that stays.
  void print(std::string_view line);
  // The same; elsewhere than on a terminal it begins with the seconds since the program began.
  void print_stamped(std::string_view line);
  // Removes what is drawn, in front of other output; with an owner, only what that one drew.
  void clear(const void* owner = nullptr);

 private:
  StatusLine();
  void erase();

  const Terminal terminal_;
  std::mutex mutex_;
  const void* drawn_by_ = nullptr;  // nullptr: nothing is drawn
};

}  // namespace gpunn::cli
