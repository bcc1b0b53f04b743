#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "cli/terminal/terminal.hpp"

namespace gpunn::cli {

// Writes to stderr as much as possible. A closed terminal or pipe, or a full disk, does not end the training.
void write_to_stderr(std::string_view text);

// The unfinished line at the bottom of a terminal, which is redrawn again and again, and the lines above it. There is
// one stderr, so there is one object of this class. Any thread may use it.
class StatusLine {
 public:
  static StatusLine& of_stderr();

  const Terminal& terminal() const { return terminal_; }
  // Columns of the drawn line. One column stays free, since some terminals wrap when the last one is written.
  std::size_t width() const;
  // Replaces the drawn line. `owner` identifies who draws.
  void draw(const void* owner, std::string_view line);
  // Prints a line that stays.
  void print(std::string_view line);
  // The same. If stderr is not a terminal, the line begins with the seconds since the program began.
  void print_stamped(std::string_view line);
  // Removes the drawn line before other output; with an owner, only that owner's line.
  void clear(const void* owner = nullptr);

 private:
  StatusLine();
  void erase();

  const Terminal terminal_;
  std::mutex mutex_;
  const void* drawn_by_ = nullptr;  // nullptr: nothing is drawn
};

}  // namespace gpunn::cli
