#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace gpunn::cli {

// Opens what the program was started without of descriptors 0 to 2: else the next file that is opened takes the number,
// and gets what is told to the user. What goes to such a stdout is an error at the end, what goes to stderr is not.
// A pipe whose reader has gone, or a file beyond `ulimit -f`, is an error of the write from here on, and no signal.
void prepare_standard_files();

// On stdout, by one thread. A failure ends nothing, least of all a training; the program's end tells of the first.
void write_to_stdout(std::string_view text);
void flush_stdout();  // what has gathered
// The errno of the first write that failed, 0: none has.
int stdout_error();

template <class... Values>
void put(fmt::format_string<Values...> format, Values&&... values) {
  write_to_stdout(fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace gpunn::cli
