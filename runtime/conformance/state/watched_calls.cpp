#include "conformance/state/watched_calls.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <set>
#include <utility>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

namespace gpunn::conformance {

namespace {

// What op_enqueue must not do, by the symbol; operator new by its mangled names.
constexpr std::array kNames{"malloc",
                            "calloc",
                            "realloc",
                            "aligned_alloc",
                            "posix_memalign",
                            "memalign",
                            "mmap",
                            "_Znwm",
                            "_Znam",
                            "_ZnwmSt11align_val_t",
                            "_ZnamSt11align_val_t",
                            "_ZnwmRKSt9nothrow_t",
                            "_ZnamRKSt9nothrow_t",
                            "cudaMalloc",
                            "cudaMallocAsync",
                            "cudaMallocHost",
                            "cudaHostAlloc",
                            "cudaMallocManaged",
                            "cudaFree",
                            "cudaMemcpy",
                            "cudaMemset",
                            "cudaDeviceSynchronize",
                            "cudaStreamSynchronize",
                            "cudaEventSynchronize"};
constexpr std::size_t kMost = kNames.size();

std::atomic<bool> armed{false};
std::array<std::atomic<int64_t>, kMost> counts{};
std::array<void*, kMost> originals{};

// All of them take at most six arguments, none of them a floating-point number, so that one signature serves.
using Word = std::uintptr_t;
using AnyCall = Word (*)(Word, Word, Word, Word, Word, Word);

template <std::size_t i>
Word counted(Word a, Word b, Word c, Word d, Word e, Word f) {
  if (armed.load(std::memory_order_relaxed)) counts[i].fetch_add(1, std::memory_order_relaxed);
  return reinterpret_cast<AnyCall>(originals[i])(a, b, c, d, e, f);
}

template <std::size_t... i>
constexpr std::array<AnyCall, kMost> all_counted(std::index_sequence<i...>) {
  return {counted<i>...};
}
constexpr std::array<AnyCall, kMost> kCounted = all_counted(std::make_index_sequence<kMost>());

std::size_t index_of(const char* name) {
  for (std::size_t i = 0; i < kMost; ++i) {
    if (std::strcmp(kNames[i], name) == 0) return i;
  }
  return kMost;
}

#if defined(__x86_64__)
constexpr bool is_function_slot(uint32_t type) { return type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT; }
#elif defined(__aarch64__)
constexpr bool is_function_slot(uint32_t type) { return type == R_AARCH64_JUMP_SLOT || type == R_AARCH64_GLOB_DAT; }
#else
constexpr bool is_function_slot(uint32_t) { return false; }
#endif

// The loader's tables hold addresses as numbers.
// NOLINTBEGIN(performance-no-int-to-ptr)

void redirect(void** slot, std::size_t name) {
  // Not what the slot holds: that may still be the stub that looks the function up and then overwrites the slot.
  if (originals[name] == nullptr) originals[name] = dlsym(RTLD_DEFAULT, kNames[name]);
  if (originals[name] == nullptr) originals[name] = *slot;
  const auto page = static_cast<Word>(sysconf(_SC_PAGESIZE));
  void* const begin = reinterpret_cast<void*>(reinterpret_cast<Word>(slot) / page * page);
  if (mprotect(begin, page, PROT_READ | PROT_WRITE) != 0) return;
  *slot = reinterpret_cast<void*>(kCounted[name]);
}

// A library's tables of what it takes from others.
void redirect_library(const dl_phdr_info& library) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < library.dlpi_phnum; ++i) {
    if (library.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(library.dlpi_addr + library.dlpi_phdr[i].p_vaddr);
    }
  }
  const ElfW(Sym)* symbols = nullptr;
  const char* names = nullptr;
  std::array<std::pair<const ElfW(Rela)*, std::size_t>, 2> tables{};  // entries and bytes
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    const auto value = dynamic->d_un.d_ptr;
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        symbols = reinterpret_cast<const ElfW(Sym)*>(value);
        break;
      case DT_STRTAB:
        names = reinterpret_cast<const char*>(value);
        break;
      case DT_JMPREL:
        tables[0].first = reinterpret_cast<const ElfW(Rela)*>(value);
        break;
      case DT_PLTRELSZ:
        tables[0].second = value;
        break;
      case DT_RELA:
        tables[1].first = reinterpret_cast<const ElfW(Rela)*>(value);
        break;
      case DT_RELASZ:
        tables[1].second = value;
        break;
      default:
        break;
    }
  }
  if (symbols == nullptr || names == nullptr) return;
  for (const auto& [entries, bytes] : tables) {
    for (std::size_t i = 0; entries != nullptr && i < bytes / sizeof(ElfW(Rela)); ++i) {
      if (!is_function_slot(static_cast<uint32_t>(ELF64_R_TYPE(entries[i].r_info)))) continue;
      const std::size_t name = index_of(names + symbols[ELF64_R_SYM(entries[i].r_info)].st_name);
      if (name < kMost) redirect(reinterpret_cast<void**>(library.dlpi_addr + entries[i].r_offset), name);
    }
  }
}

// "operator new" of "_Znwm"
std::string shown(std::string_view name) { return std::string(name.starts_with("_Zn") ? "operator new" : name); }

}  // namespace

WatchedCalls::WatchedCalls(const plugins::Plugin& plugin) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(plugin.table().op_query), &info) == 0) return;
  static std::set<const void*> redirected;
  if (!redirected.insert(info.dli_fbase).second) return;
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* wanted) {
        Dl_info of{};
        for (int i = 0; i < library->dlpi_phnum; ++i) {
          if (library->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
          const auto* address = reinterpret_cast<const void*>(library->dlpi_addr + library->dlpi_phdr[i].p_vaddr);
          if (dladdr(address, &of) == 0 || of.dli_fbase != wanted) return 0;
          redirect_library(*library);
          return 1;
        }
        return 0;
      },
      info.dli_fbase);
}

// NOLINTEND(performance-no-int-to-ptr)

void WatchedCalls::arm() {
  for (auto& count : counts) count = 0;
  armed = true;
}

void WatchedCalls::disarm() { armed = false; }

std::string WatchedCalls::found() const {
  std::string text;
  for (std::size_t i = 0; i < kMost; ++i) {
    if (counts[i] == 0) continue;
    text += (text.empty() ? "" : ", ") + std::to_string(counts[i]) + " of " + shown(kNames[i]);
  }
  return text;
}

}  // namespace gpunn::conformance
