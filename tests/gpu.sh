#!/usr/bin/env bash
# What needs a GPU: builds, and then tests, checks, trains, measures. Prints one table; the logs are in $OUT.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

usage() {
  cat <<'END'
usage: tests/gpu.sh [PART...]     without a part: all of them, in this order

  build      configure for this machine's GPU, build everything
  tests      ctest, of which the tests labelled gpu run here alone
  check      conformance of every CUDA backend, with nothing left out
  train      LeNet-5 and the MLP, ten epochs, three seeds, on every backend
  detection  FCOS on BCCD, Raccoon and digits, where $GPUNN_DATA_DIR has detection/, three seeds: mAP at 0.5 and time
  race       LeNet-5 on every backend: table and chart
  check_run  a training on cpu, each op compared with cuda_naive and with cudnn
  bench      training steps against PyTorch's, eager and as a CUDA graph
  kernels    products, convolutions and steps of cuda_tiled against PyTorch's, each with what it must reach; a roofline
  profile    where a step's time goes
  faults     faults planted in cuda_naive, each to be found by the check; a training killed 100 times
  python     the Python package on a GPU; a step of ResNet-18 in PyTorch with gpunn's kernels inside, beside PyTorch alone
  ranks      two GPUs: conformance of collectives, rates beside one GPU and beside the estimate, ranks killed 20 times
  examples   a third party's CUDA kernel: built outside, checked, trained with
  sanitize   compute-sanitizer's racecheck, initcheck, memcheck and synccheck over conformance cases and the kernels' tests; takes many minutes

Environment: OUT, folder of the logs (build/gpu/out); GPUNN_DATA_DIR, where MNIST is; BUILD, the build tree (build/gpu);
PYTHON, one with PyTorch (python3); MODES of PyTorch beside kernels' steps (eager,graph,compile; compiling takes minutes);
TOOLS of compute-sanitizer (racecheck,initcheck,memcheck,synccheck).
END
}

build=${BUILD:-build/gpu}
out=${OUT:-build/gpu/out}
python=${PYTHON:-python3}
modes=${MODES:-eager,graph,compile}
tools=${TOOLS:-racecheck,initcheck,memcheck,synccheck}
gpunn=$build/bin/gpunn
cuda_backends=(cuda_naive cuda_tiled cudnn)
failed=0
mkdir -p "$build" "$out"
build=$(cd "$build" && pwd) out=$(cd "$out" && pwd)
gpunn=$build/bin/gpunn
table=$out/summary.md
export GPUNN_CACHE_DIR=${GPUNN_CACHE_DIR:-$build/tuning}

# row WHAT FOUND WANTED VERDICT
row() { printf '| %s | %s | %s | %s |\n' "$1" "$2" "$3" "$4" | tee -a "$table" >&2; }

# judge WHAT FOUND WANTED STATUS: a row, and a failure remembered.
judge() {
  if [ "$4" = 0 ]; then row "$1" "$2" "$3" ok; else
    row "$1" "$2" "$3" "**failed**"
    failed=$((failed + 1))
  fi
}

# seconds of the clock since $1
since() { echo $((SECONDS - $1)) s; }

part_build() {
  local start=$SECONDS status=0 package=OFF
  ! "$python" -c 'import nanobind' 2>/dev/null || package=ON
  { cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DGPUNN_CUDA=ON -DGPUNN_WARNINGS_AS_ERRORS=ON \
    -DGPUNN_PYTHON="$package" -DPython_EXECUTABLE="$(command -v "$python")" \
    && ninja -C "$build" -k 0; } >"$out/build.log" 2>&1 || status=1
  judge "build" "$(since "$start")" "no warning" "$status"
  [ "$status" = 0 ] && return
  grep -E 'error:|FAILED' "$out/build.log" | head -n 20
  exit 1
}

part_tests() {
  local status=0
  ctest --test-dir "$build" -LE long -j "$(nproc)" --output-on-failure >"$out/tests.log" 2>&1 || status=1
  judge "tests" "$(grep -E 'tests passed|tests failed' "$out/tests.log" | tail -n 1)" "all" "$status"
}

part_check() {
  local status=0
  "$gpunn" check "${cuda_backends[@]}" --required --format markdown >"$out/check.md" 2>"$out/check.log" || status=1
  judge "conformance of ${cuda_backends[*]}" "$(grep -hoE '[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$out/check.md" "$out/check.log" | tr '\n' ';')" \
    "no failure, no skip" "$status"
}

# accuracy_of EXPERIMENT BACKEND SEED: best test accuracy, percent, and seconds of training.
accuracy_of() {
  "$gpunn" run "experiments/$1.yaml" --backend "$2" --set "training.seed=$3" --runs "$build/runs" --quiet --json |
    "$python" -c '
import json, sys
events = [json.loads(line) for line in sys.stdin]
best = max(event["test"]["accuracy"] for event in events if event["event"] == "epoch")
print("{:.2f} {:.2f}".format(100 * best, events[-1]["train_seconds"]))'
}

part_train() {
  local experiment backend seed wanted found accuracies seconds
  for experiment in lenet_mnist:99.0 mlp_mnist:97.9; do
    wanted=${experiment#*:} experiment=${experiment%%:*}
    for backend in cpu "${cuda_backends[@]}"; do
      accuracies="" seconds=""
      for seed in 1 2 3; do
        found=$(accuracy_of "$experiment" "$backend" "$seed" 2>>"$out/train.log") || found="0 0"
        accuracies+="${found% *} " seconds+="${found#* } "
        [ "$backend" != cpu ] || break
      done
      "$python" -c "import sys; sys.exit(min(map(float, '$accuracies'.split())) < $wanted)"
      judge "$experiment on $backend, best test accuracy" "$accuracies%, trained in $seconds s" "$wanted %" $?
    done
  done
}

# The mAP at 0.5 of the test part after the last epoch, and the seconds of training: map_of SEED EXPERIMENT --set ...
map_of() {
  local seed=$1
  shift
  "$gpunn" run "$@" --backend cuda_tiled --set "training.seed=$seed" --set precision=bf16 --runs "$build/runs" --quiet --json |
    "$python" -c '
import json, sys
events = [json.loads(line) for line in sys.stdin]
last = [event for event in events if event["event"] == "epoch"][-1]
print("{:.4f} {:.1f}".format(last["test"]["map_50"], events[-1]["train_seconds"]))'
}

part_detection() {
  local data=${GPUNN_DATA_DIR:-}/detection weights=$build/resnet18.safetensors name wanted seed found maps seconds
  if [ ! -d "$data" ]; then
    judge "detection" "no $data" "GPUNN_DATA_DIR with detection/" 0
    return
  fi
  xz -dkc "$GPUNN_DATA_DIR/weights/resnet18_imagenet.safetensors.xz" >"$weights"
  local voc=(experiments/fcos_voc.yaml --set "init_from.file=$weights")
  for name in bccd:0.925 raccoon:0.90 digits:0.97; do
    wanted=${name#*:} name=${name%%:*} maps="" seconds=""
    local what=(experiments/fcos_digits.yaml --set data.digit_source=mnist --set data.synthetic_train=8000 --set training.epochs=20
      --set model.parameters.base=32 --set model.parameters.width=64 --set model.parameters.depth=2)
    [ "$name" != bccd ] || what=("${voc[@]}" --set "data.path=$data/bccd" --set "data.image_size=[480,640]")
    [ "$name" != raccoon ] || what=("${voc[@]}" --set "data.path=$data/raccoon" --set data.format=csv --set data.images=images
      --set "data.boxes=$data/raccoon/data/train_labels.csv" --set "data.test_boxes=$data/raccoon/data/test_labels.csv" --set training.epochs=70)
    for seed in 1 2 3; do
      found=$(map_of "$seed" "${what[@]}" 2>>"$out/detection.log") || found="0 0"
      maps+="${found% *} " seconds+="${found#* } "
    done
    "$python" -c "import sys; m = list(map(float, '$maps'.split())); sys.exit(sum(m) / len(m) < $wanted)"
    judge "FCOS on $name, mAP at 0.5" "$maps, trained in $seconds s" "$wanted" $?
  done
}

part_race() {
  local status=0
  "$gpunn" race experiments/lenet_mnist.yaml --epochs 3 --chart "$out/race.svg" --format markdown \
    --runs "$build/runs" >"$out/race.md" 2>"$out/race.log" || status=1
  judge "race" "$(grep -c '^|' "$out/race.md") lines" "every backend finishes" "$status"
}

part_check_run() {
  local backend status
  for backend in "${cuda_backends[@]}"; do
    status=0
    "$gpunn" run experiments/lenet_mnist.yaml --backend "check:$backend,cpu" --steps 500 --runs "$build/runs" --quiet \
      >"$out/check_run_$backend.log" 2>&1 || status=1
    judge "each op of 500 LeNet steps, $backend against cpu" "$(grep -m 1 -E 'agreed|departed|error' "$out/check_run_$backend.log")" "within the tolerances" "$status"
  done
}

part_bench() {
  local line status
  "$python" bench/compare --gpunn "$gpunn" --python "$python" --backend cudnn --device cuda --modes eager,graph \
    --threads 8 --rounds 3 --json >"$out/bench.json" 2>"$out/bench.log"
  status=$?
  judge "bench/compare" "$(wc -l <"$out/bench.json") comparisons" "4" "$status"
  "$python" - "$out/bench.json" >>"$table" <<'END'
import json, sys
for line in open(sys.argv[1]):
    r = json.loads(line)
    wanted, share = (1.5, 0.6) if r["mode"] == "graph" else (1.0, 1.0)
    memory = r["gpunn_peak_bytes"] / r["torch_peak_bytes"]
    verdict = "ok" if r["ratio"] >= wanted and memory <= share else "**short**"
    print(
        f"| {r['what']}, cudnn against PyTorch {r['torch']} {r['mode']} | {r['gpunn_seconds'] * 1e3:.4f} against"
        f" {r['torch_seconds'] * 1e3:.4f} ms: {r['ratio']:.2f} times; {r['gpunn_peak_bytes'] / 1e6:.1f} against"
        f" {r['torch_peak_bytes'] / 1e6:.1f} MB: {memory:.2f} | {wanted} times, {share} of the memory | {verdict} |"
    )
END
  for experiment in lenet_mnist mlp_mnist; do
    for backend in "${cuda_backends[@]}"; do
      "$gpunn" bench "experiments/$experiment.yaml" --backend "$backend" --json >"$out/step.json" 2>>"$out/bench.log"
      line=$("$python" -c '
import json, sys
r = json.load(open(sys.argv[1]))
print(r["median_seconds"] * 1e6, r.get("allocations"), r.get("synchronizations"), r.get("captured"), sep="|")' "$out/step.json")
      IFS='|' read -r microseconds allocations waits captured <<<"$line"
      [ "$allocations" = 0 ] && [ "$waits" = 0 ]
      judge "$experiment step on $backend" "$microseconds us; $allocations allocations, $waits waits, captured: $captured" "0, 0, True" $?
    done
  done
}

part_kernels() {
  local short status
  "$python" bench/compare kernels --gpunn "$gpunn" --python "$python" --backend cuda_tiled --library cudnn --device cuda \
    --modes "$modes" --threads 8 --markdown >"$out/kernels.md" 2>"$out/kernels.log"
  # 1: measured, and short somewhere, which the rows tell.
  [ $? -le 1 ]
  status=$?
  judge "bench/compare kernels" "$(grep -c '^|' "$out/kernels.md") rows" "all measured" "$status"
  cat "$out/kernels.md" >>"$table"
  short=$(grep -c '\*\*short\*\*' "$out/kernels.md")
  "$gpunn" bench kernels --backend cuda_naive,cuda_tiled,cudnn --kernel all --format markdown --chart "$out/roofline.svg" \
    --repeats 15 >"$out/ladder.md" 2>>"$out/kernels.log"
  status=$?
  judge "gpunn bench kernels, every kernel of the ladder" "$(grep -c '^|' "$out/ladder.md") lines, $(grep -c WRONG "$out/ladder.md") wrong; $short rows short above" \
    "none wrong" "$status"
}

part_profile() {
  local backend status=0
  for backend in "${cuda_backends[@]}"; do
    "$gpunn" run experiments/lenet_mnist.yaml --backend "$backend" --epochs 1 --runs "$build/runs" \
      --profile "$out/trace_$backend.json" >"$out/profile_$backend.log" 2>&1 || status=1
  done
  judge "profile" "traces" "written" "$status"
}

part_faults() {
  local plugin status=0
  plugin=$(find "$build" -name 'libgpunn_backend_cuda_naive.so' | head -n 1)
  "$python" -B tests/mutations/mutations.py "$gpunn" "$build/tests/mutations/libgpunn_backend_mutant.so" "$plugin" . \
    --verbose --table "$out/mutations.md" >"$out/mutations.log" 2>&1 || status=1
  judge "faults planted in cuda_naive" "$(grep -E '^[0-9]+ of' "$out/mutations.log" | tail -n 1)" "all found" "$status"
  status=0
  "$python" -B tests/faults/kills_test.py "$gpunn" 100 --backend cuda_tiled >"$out/kills.log" 2>&1 || status=1
  judge "a training killed at random moments" "$(tail -n 1 "$out/kills.log")" "the same weights" "$status"
}

part_python() {
  local status=0
  if [ ! -d "$build/python" ]; then
    judge "the Python package" "not built: no nanobind" "" 0
    return
  fi
  PYTHONPATH=$build/python "$python" -B -m pytest -q tests/python/test_torch_gpu.py >"$out/python.log" 2>&1 || status=1
  judge "the Python package" "$(tail -n 1 "$out/python.log")" "all" "$status"
  local size batch
  for size in 32:128 224:64; do
    batch=${size#*:} size=${size%%:*} status=0
    PYTHONPATH=$build/python "$python" bench/peers/inside_pytorch.py --device cuda --size "$size" --batch "$batch" --modes eager graph \
      --precisions fp32 tf32 >"$out/inside_pytorch_$size.json" 2>>"$out/python.log" || status=1
    judge "inside PyTorch, ${size}x$size" "$(wc -l <"$out/inside_pytorch_$size.json") rows in inside_pytorch_$size.json" "all measured" "$status"
  done
}

part_ranks() {
  local status=0 name rows precision
  if [ "$(nvidia-smi --list-gpus | wc -l)" -lt 2 ]; then
    judge "ranks" "one GPU" "two" 0
    return
  fi
  "$gpunn" check cuda_tiled --suite collectives --required >"$out/collectives.log" 2>&1 || status=1
  judge "conformance of collectives" "$(grep -hoE '[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$out/collectives.log" | tail -n 1)" "no failure" "$status"
  for name in lenet_mnist:128:fp32 mlp_mnist:128:fp32 resnet18_cifar10:512:bf16 resnet18_cifar10:64:bf16 resnet18_cifar10:512:tf32; do
    precision=${name##*:} rows=${name#*:} rows=${rows%%:*} name=${name%%:*} status=0
    "$python" bench/scaling.py "$gpunn" "experiments/$name.yaml" --rows "$rows" --steps 400 \
      --set "training.precision=$precision" >"$out/scaling_${name}_${rows}_$precision.log" 2>&1 || status=1
    judge "two GPUs, $name, $rows rows each, $precision" "$(tail -n 1 "$out/scaling_${name}_${rows}_$precision.log")" "estimated within a tenth" "$status"
  done
  status=0
  "$python" -B tests/faults/rank_kills.py "$gpunn" 20 --backend cuda_tiled >"$out/rank_kills.log" 2>&1 || status=1
  judge "ranks killed at random moments" "$(tail -n 1 "$out/rank_kills.log")" "the same weights" "$status"
}

part_examples() {
  local status=0
  ctest --test-dir "$build" -R '^example|^package' --output-on-failure >"$out/examples.log" 2>&1 || status=1
  judge "examples, built outside the project" "$(grep -E 'tests passed' "$out/examples.log")" "all" "$status"
}

# sanitize NAME TOOL COMMAND...: one run of compute-sanitizer, its words in a log of that name, its end beside.
sanitize() {
  # Without the pool the tools see every block's true end; racecheck and synccheck mistake two kernels for one. All kernels
  # are looked at: racecheck fails at the barrier of a cluster in a kernel that --kernel-regex or --launch-count leaves out.
  GPUNN_POOL=0 GPUNN_EARLY_LAUNCH=0 compute-sanitizer --tool "$2" --error-exitcode 9 "${@:3}" >"$out/sanitize_$1.log" 2>&1
  echo $? >"$out/sanitize_$1.end"
}

part_sanitize() {
  local backend tool precision op name names=() products=() convolutions=() trainings=()
  # run NAME TOOL COMMAND...: beside others; more of them only take turns on the GPU.
  run() {
    while [ "$(jobs -rp | wc -l)" -ge "$(($(nproc) / 2 + 1))" ]; do wait -n; done
    sanitize "$@" & names+=("$1")
  }
  # check NAME BACKEND TOOL ARGUMENT...: of the conformance cases
  check() { run "$1" "$3" "$gpunn" check "$2" --in-process "${@:4}"; }
  for tool in ${tools//,/ }; do
    name=cuda_tiled_$tool
    # Racecheck takes seconds a product or convolution, minutes a training of the conformance suite: some of the cases, each
    # with every kernel, and two steps of two trainings whose steps are fused.
    if [ "$tool" = racecheck ]; then
      products=(--case "f32[127, 255]" --case "f32[84, 128]")
      convolutions=(--case LeNet --case "several blocks" --case deep --case "many images")
      trainings=()
      for op in lenet_mnist mlp_mnist; do
        run "${name}_$op" "$tool" "$gpunn" run "experiments/$op.yaml" --backend cuda_tiled --epochs 1 --quiet --runs "$build/runs" \
          --set data.dataset=digits --set data.synthetic_train=256 --set data.synthetic_test=128
      done
    else
      products=() convolutions=() trainings=(MLP LeNet windows dropout)
    fi
    for op in ${trainings[@]+"${trainings[@]}"}; do check "${name}_${op// /_}" cuda_tiled "$tool" --suite subgraphs --case "$op"; done
    for precision in fp32 tf32; do
      for op in CONV2D CONV2D_BACKWARD_DATA CONV2D_BACKWARD_FILTER CONV2D_BIAS_ACTIVATION; do
        check "${name}_${precision}_$op" cuda_tiled "$tool" --suite ops --precision "$precision" --op "$op" ${convolutions[@]+"${convolutions[@]}"}
      done
    done
    for precision in fp32 tf32 bf16; do
      for op in MATMUL MATMUL_BIAS_ACTIVATION; do
        check "${name}_${precision}_$op" cuda_tiled "$tool" --suite ops --precision "$precision" --op "$op" ${products[@]+"${products[@]}"}
      done
    done
    check "${name}_others" cuda_tiled "$tool" --suite ops --without MATMUL --without CONV2D
    for op in masked pooling stream-k mn-major slices; do run "${name}_tests_of_$op" "$tool" "$build/bin/test_backends_cuda_tiled_gpu" "[$op]"; done
    [ "$tool" = synccheck ] && continue
    for backend in cuda_naive cudnn; do check "${backend}_$tool" "$backend" "$tool" --suite ops --without 20011; done
  done
  wait
  for name in "${names[@]}"; do
    judge "compute-sanitizer ${name//_/ }" "$(grep -hE 'passed,|All tests passed|SUMMARY' "$out/sanitize_$name.log" | sed -E 's/;.*//; s/=+ //' | tr '\n' ' ')" \
      "no error" "$(cat "$out/sanitize_$name.end")"
    tail -n 40 "$out/sanitize_$name.log" >>"$out/sanitize.log"
    rm -f "$out/sanitize_$name.log" "$out/sanitize_$name.end"
  done
}

parts=(build tests check train detection race check_run bench kernels profile faults python ranks examples sanitize)
case ${1:-} in -h | --help) usage && exit 0 ;; esac
[ $# -eq 0 ] || parts=("$@")
for part in "${parts[@]}"; do
  declare -F "part_$part" >/dev/null || {
    echo "gpu.sh: no part '$part'" >&2
    usage >&2
    exit 2
  }
done

{
  echo "$(date -u +%F), commit $(git rev-parse --short HEAD 2>/dev/null || echo '?'), $(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader),"
  echo "CUDA $(nvcc --version | sed -nE 's/.*release ([0-9.]+).*/\1/p'), $(nproc) cores. \`tests/gpu.sh ${parts[*]}\`"
  echo
  echo "| what | found | wanted | |"
  echo "| --- | --- | --- | --- |"
} >"$table"
for part in "${parts[@]}"; do
  echo "=== $part" >&2
  start=$SECONDS
  "part_$part"
  echo "=== $part: $(since "$start")" >&2
done
cat "$table"
echo
echo "$failed failed"
[ "$failed" = 0 ]
