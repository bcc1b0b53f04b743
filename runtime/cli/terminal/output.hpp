#pragma once

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace gpunn::cli {

// Opens the descriptors 0 to 2 that were closed when the program started. Otherwise the next opened file would get
// their numbers, and the program's output. Such a stdout is an error at the end; such a stderr is not. From here on, a
// pipe without a reader, or a file beyond `ulimit -f`, is a write error and no signal.
void prepare_standard_files();

// Writes to stdout, from one thread. A failure does not end a training; the program reports the first one at its end.
void write_to_stdout(std::string_view text);
void flush_stdout();  // flushes the buffer
// The errno of the first write that failed; 0: none.
int stdout_error();

template <class... Values>
void put(fmt::format_string<Values...> format, Values&&... values) {
  write_to_stdout(fmt::format(format, std::forward<Values>(values)...));
}

}  // namespace gpunn::cli
