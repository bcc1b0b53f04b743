#include "conformance/process/work.hpp"

#include <gpunn/error.hpp>

#include <exception>
#include <sstream>
#include <utility>

#include "conformance/process/channel.hpp"

namespace gpunn::conformance {

namespace {

CheckCase run_one(Work& work, std::size_t index, const Note& note) {
  CheckCase result;
  try {
    work.run(index, result, note);
  } catch (const std::exception& exception) {
    result.verdict = Verdict::failed;
    result.detail = exception.what();
  }
  return result;
}

// After a failure that says so, nothing on the device can be believed.
bool lost_device(const CheckCase& result) {
  return result.verdict == Verdict::failed && result.detail.find("DEVICE_LOST") != std::string::npos;
}

// All in one string, with a character between them that names don't have.
std::string packed(const Opened& opened) {
  return opened.backend + '\0' + opened.device + '\0' + opened.no_device + '\0' + opened.base + '\0' +
         (opened.fuses ? "fuses" : "");
}

Opened unpacked(const std::string& text) {
  std::istringstream parts(text);
  Opened opened;
  std::string fuses;
  for (std::string* part : {&opened.backend, &opened.device, &opened.no_device, &opened.base, &fuses}) {
    std::getline(parts, *part, '\0');
  }
  opened.fuses = !fuses.empty();
  return opened;
}

// In the child: everything from check `next` on.
void serve(Work& work, std::size_t next, int pipe) {
  using Kind = Message::Kind;
  const Note note = [pipe](const std::string& what) { send(pipe, {.kind = Kind::note, .text = what}); };
  Opened opened;
  try {
    opened = work.open();
  } catch (const Error& error) {
    return send(pipe, {.kind = Kind::refused, .code = static_cast<int>(error.code()), .text = error.what()});
  } catch (const std::exception& error) {
    return send(pipe, {.kind = Kind::refused, .code = static_cast<int>(ExitCode::failed), .text = error.what()});
  }
  send(pipe, {.kind = Kind::opened, .text = packed(opened)});
  for (std::size_t i = next; opened.no_device.empty() && i < work.size(); ++i) {
    const CheckCase result = run_one(work, i, note);
    end_of_words();
    send(pipe, {.kind = Kind::result, .result = result});
    if (lost_device(result)) return send(pipe, {.kind = Kind::lost});
  }
  try {
    work.close();
  } catch (const std::exception& error) {
    note(std::string("closing failed: ") + error.what());
    return;
  }
  send(pipe, {.kind = Kind::closed});
}

// The parent's side.
class Supervisor {
 public:
  Supervisor(Work& work, const WorkListener& listener, const WorkLimits& limits)
      : work_(work), listener_(listener), limits_(limits) {}

  std::string run() {
    while (true) {
      Child child([this](int pipe) { serve(work_, next_, pipe); });
      opened_ = ended_ = false;
      note_.clear();
      refusal_.clear();
      while (!ended_) {
        auto message = child.receive(opened_ ? limits_.check : limits_.open);
        if (!message) break;
        take(*message);
      }
      const std::string how = child.end();
      if (!refusal_.empty()) return "opening the device again failed: " + refusal_;
      if (ended_) {
        if (next_ == work_.size() || no_device_) return "";
        continue;  // the device was lost
      }
      if (!opened_) return "opening the device " + how;
      if (next_ == work_.size() || no_device_) return "closing the device " + how + (note_.empty() ? "" : ": " + note_);
      CheckCase result;
      result.verdict = Verdict::failed;
      result.detail = (note_.empty() ? "it " : note_ + " ") + how;
      listener_.done(next_++, std::move(result));
      if (next_ == work_.size()) return "";
    }
  }

 private:
  void take(Message& message) {
    switch (message.kind) {
      case Message::Kind::opened: {
        const Opened opened = unpacked(message.text);
        no_device_ = !opened.no_device.empty();
        opened_ = true;
        if (!std::exchange(told_, true)) listener_.opened(opened);
        return;
      }
      case Message::Kind::refused:
        if (!told_) throw Error(message.text, static_cast<ExitCode>(message.code));
        refusal_ = std::move(message.text);
        ended_ = true;
        return;
      case Message::Kind::note:
        note_ = std::move(message.text);
        return;
      case Message::Kind::result:
        note_.clear();
        listener_.done(next_++, std::move(message.result));
        return;
      case Message::Kind::lost:
      case Message::Kind::closed:
        ended_ = true;
        return;
    }
  }

  Work& work_;
  const WorkListener& listener_;
  const WorkLimits& limits_;
  std::size_t next_ = 0;
  bool told_ = false, opened_ = false, ended_ = false, no_device_ = false;
  std::string note_, refusal_;
};

}  // namespace

std::string run_in_children(Work& work, const WorkListener& listener, const WorkLimits& limits) {
  return Supervisor(work, listener, limits).run();
}

std::string run_here(Work& work, const WorkListener& listener) {
  const Opened opened = work.open();
  listener.opened(opened);
  if (opened.no_device.empty()) {
    for (std::size_t i = 0; i < work.size(); ++i) listener.done(i, run_one(work, i, [](const std::string&) {}));
  }
  work.close();
  return "";
}

}  // namespace gpunn::conformance
