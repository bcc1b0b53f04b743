#pragma once

#include <gpunn/check.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpunn::conformance {

// The messages of a child process to its parent.
struct Message {
  enum class Kind : char {
    opened,   // text: as Opened::write
    refused,  // could not open; code: an ExitCode, text: why
    note,     // text: what is about to be tried
    result,   // result
    lost,     // the device can't be used any more in this process, which ends here
    closed,   // all is done and closed
  };
  Kind kind = Kind::note;
  int code = 0;
  std::string text = {};
  CheckCase result = {};  // of kind result: verdict and figures, no labels
};

// Writes a message to a pipe. Ends the process if the pipe has no reader any more.
void send(int pipe, const Message& message);

// In the child: everything printed so far belongs to work that is done.
void end_of_words();

// A forked process and its messages. Its output goes to this process's stderr, and the last part is kept: the message
// of an assertion or a sanitizer.
class Child {
 public:
  // `body` runs in the child, on a separate thread, and gets the pipe to send to. The child then ends at once. Throws
  // Error if no process can be started.
  explicit Child(const std::function<void(int pipe)>& body);
  ~Child();  // ends it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The next message; empty if the child has ended, or is silent for this long and was killed.
  std::optional<Message> receive(std::chrono::milliseconds limit);
  // After receive() gave nothing: "crashed (Segmentation fault)", "hung: ..." or "ended the process (exit code 3)",
  // with its last words.
  std::string end();

 private:
  bool read_some(std::chrono::steady_clock::time_point deadline);
  std::optional<Message> take();
  void forward_output();

  pid_t process_ = -1;
  int messages_ = -1, output_ = -1;  // ends to read from
  std::string received_;             // of messages, not yet taken
  std::string last_words_;
  bool hung_ = false;
};

}  // namespace gpunn::conformance
