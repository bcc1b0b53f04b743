#pragma once

#include <gpunn/check.hpp>

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include <sys/types.h>

namespace gpunn::conformance {

// What a child process tells its parent.
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

// In the child: what was printed until now was printed by work that is done.
void end_of_words();

// A forked process and what comes from it. What it prints goes on to this process's stderr, and the last of it is kept:
// the dying words of an assertion or a sanitizer.
class Child {
 public:
  // `body` runs in the child, on a thread of its own, and is given the pipe to send to; then the child ends without
  // further ado. Throws Error where no process can be started.
  explicit Child(const std::function<void(int pipe)>& body);
  ~Child();  // ends it
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // The next message; nothing where the child has ended or is silent for so long, in which case it is killed.
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
