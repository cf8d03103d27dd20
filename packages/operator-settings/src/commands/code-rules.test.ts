import { describe, expect, test } from 'bun:test'
import { parameterInCode } from './code-arguments.ts'
import { CODE_RULES } from './code-rules.ts'

/** For each entry, by its first name, what is refused with it. */
const REFUSED: Readonly<Record<string, readonly (readonly string[])[]>> = {
  sh: [
    ['-c', 'cat {p}'],
    ['-lc', '{p}'],
    ['--rcfile', '{p}', '-i'],
    ['--init-file={p}', '-i'],
  ],
  su: [['-c', '{p}']],
  python: [['-c', 'print({p})'], ['-m', '{p}'], ['-m', 'timeit', '{p}'], ['-Ic{p}']],
  timeit: [['-s', '{p}']],
  pdb: [['-c', '{p}', 'x.py']],
  perl: [
    ['-e', '{p}'],
    ['-lane', 'print {p}'],
    ['-M{p}', '-e', '1'],
  ],
  ruby: [
    ['-e', '{p}'],
    ['-r', '{p}'],
  ],
  lua: [
    ['-e', '{p}'],
    ['-l', '{p}'],
  ],
  Rscript: [['-e', '{p}']],
  node: [['-e', '{p}'], ['-p', '{p}'], ['--eval={p}'], ['--require', '{p}', 'x.js']],
  deno: [
    ['eval', '{p}'],
    ['eval', '--ext=ts', '{p}'],
  ],
  php: [
    ['-r', '{p}'],
    ['-d', 'auto_prepend_file={p}'],
  ],
  julia: [
    ['-e', '{p}'],
    ['--eval', '{p}'],
  ],
  erl: [['-eval', '{p}']],
  expect: [['-c', 'spawn {p}']],
  awk: [
    ['{p}', 'file'],
    ['/{p}/', 'file'],
    ['-F', ':', '{p}', 'file'],
    ['-v', 'x=1', '--', '{p}'],
    ['-f', '{p}', 'file'],
  ],
  sed: [
    ['s/a/{p}/', 'file'],
    ['-n', '-e', '{p}', 'file'],
    ['-ne', '{p}'],
    ['--expression={p}'],
    ['-f', '{p}'],
  ],
  m4: [['{p}']],
  vi: [['-c', '{p}'], ['--cmd', '{p}'], ['+{p}'], ['+call {p}', 'file'], ['-S', '{p}']],
  view: [['-c', '{p}']],
  emacs: [['--eval', '{p}']],
  less: [['+!{p}', 'file']],
  man: [['-P', '{p}', 'ls']],
  gdb: [['-ex', '{p}'], ['--eval-command={p}'], ['-x', '{p}']],
  lldb: [['-o', '{p}']],
  sqlite3: [
    ['x.db', '{p}'],
    ['-cmd', '{p}', 'x.db'],
  ],
  psql: [['-c', '{p}']],
  env: [
    ['{p}', 'ls'],
    ['A={p}', 'ls'],
    ['{p}=1', 'ls'],
    ['-S', '{p}'],
    ['-i', 'A=1', '{p}'],
  ],
  sudo: [['{p}'], ['-u', 'me', '{p}'], ['A={p}', 'ls'], ['-u', 'me', 'awk', '{p}']],
  nice: [
    ['-n', '5', '{p}'],
    ['-n', '5', 'sed', '{p}', 'file'],
  ],
  nohup: [['{p}'], ['sh', '-c', '{p}']],
  strace: [['-o', 'log', '{p}']],
  busybox: [['{p}'], ['awk', '{p}']],
  npx: [['{p}'], ['-c', '{p}']],
  npm: [['exec', '{p}']],
  pipx: [['run', '{p}']],
  timeout: [
    ['5', '{p}'],
    ['-k', '1', '5', '{p}'],
    ['5', 'awk', '{p}', 'file'],
  ],
  taskset: [['1', '{p}']],
  flock: [
    ['lock', '{p}'],
    ['lock', '-c', '{p}'],
  ],
  watch: [['{p}'], ['-n', '1', 'ls', '{p}']],
  entr: [['-s', '{p}'], ['{p}']],
  xargs: [['{p}'], ['-n', '1', '{p}'], ['sh', '-c', '{p}']],
  parallel: [['echo', '{p}']],
  find: [
    ['.', '-exec', '{p}', ';'],
    ['.', '-exec', 'sh', '-c', '{p}', ';'],
    ['.', '-exec', 'awk', '{p}', ';'],
  ],
  fd: [['-x', '{p}']],
  tmux: [
    ['new', '{p}'],
    ['new-session', '-d', '{p}'],
  ],
  xterm: [['-e', '{p}']],
  socat: [['-', '{p}']],
  nc: [['-e', '{p}', 'host', '1']],
  ssh: [
    ['host', '{p}'],
    ['-p', '22', 'host', 'ls', '{p}'],
    ['-o', 'ProxyCommand={p}', 'host'],
    ['-oProxyCommand={p}', 'host'],
  ],
  scp: [
    ['-o', 'ProxyCommand={p}', 'a', 'b'],
    ['-S{p}', 'a', 'b'],
  ],
  rsync: [
    ['-e', '{p}', 'a', 'b'],
    ['--rsh={p}', 'a', 'b'],
  ],
  git: [
    ['-c', '{p}', 'log'],
    ['-c', 'core.pager={p}', 'log'],
    ['clone', '--upload-pack={p}', 'x'],
    ['rebase', '--exec', '{p}'],
    ['bisect', 'run', '{p}'],
    ['submodule', 'foreach', '{p}'],
  ],
  hg: [['--config', '{p}', 'log']],
  tar: [
    ['-xf', 'a.tar', '--to-command={p}'],
    ['-cf', 'a.tar', '--checkpoint=1', '--checkpoint-action=exec={p}', 'x'],
    ['-I', '{p}', '-xf', 'a.tar'],
  ],
  zip: [['-T', '-TT', '{p}', 'a.zip', 'x']],
  wget: [['-e', '{p}', 'url']],
  apt: [
    ['-o', 'APT::Update::Pre-Invoke::={p}', 'update'],
    ['-oA={p}', 'update'],
  ],
  make: [['A={p}', 'all'], ['all', 'SHELL={p}'], ['--eval={p}'], ['-f', '{p}']],
  cmake: [['-P', '{p}']],
}

describe('(threat T9) a parameter that would be run', () => {
  for (const { names } of CODE_RULES) {
    const [first = ''] = names
    test(`is refused with ${names.join(', ')}`, () => {
      const argvs = REFUSED[first] ?? []
      expect(argvs.length).toBeGreaterThan(0)
      for (const args of argvs)
        expect([args, parameterInCode([first, ...args])?.parameter]).toEqual([args, 'p'])
      // By each of its names, in a folder, and with a version.
      for (const name of names)
        expect(argvs.some((args) => parameterInCode([`/usr/bin/${name}`, ...args])?.parameter === 'p')).toBe(
          true,
        )
    })
  }

  test('is said with the program that would run it', () => {
    expect(parameterInCode(['timeout', '5', '/usr/bin/python3.12', '-c', '{p}'])).toEqual({
      parameter: 'p',
      program: 'python3.12',
    })
  })

  test.each([
    [['tail', '-n', '{p}', '--', 'logs/{q}.log']],
    [['grep', '-c', '{p}', 'file']],
    [['bash', '-c', 'grep -- "$1" log', 'bash', '{p}']],
    [['bash', 'run.sh', '{p}']],
    [['python3', 'run.py', '{p}']],
    [['python3', 'run.py', 'sed', '{p}']],
    [['bash', 'run.sh', 'make', 'A={p}']],
    [['node', 'run.js', '--name={p}']],
    [['awk', '-f', 'sum.awk', '{p}']],
    [['awk', '{ print $1 }', '{p}']],
    [['awk', '-v', 'x={p}', 'BEGIN { print x }']],
    [['sed', '-n', '1,5p', '{p}']],
    [['sed', '-e', 's/a/b/', '{p}']],
    [['env', 'A=1', 'grep', 'x={p}', 'file']],
    [['sudo', '-u', 'me', 'systemctl', 'status', '{p}']],
    [['timeout', '{p}', 'sleep', '5']],
    [['timeout', '-k', '1', '5', 'grep', '{p}', 'file']],
    [['nice', '-n', '{p}', 'ls']],
    [['find', '.', '-name', '{p}']],
    [['find', '.', '-exec', 'grep', '{p}', '{}', ';']],
    [['xargs', '-n', '1', 'grep', '{p}']],
    [['git', 'log', '--author={p}', '-n', '{q}']],
    [['git', 'push', '-u', 'origin', '{p}']],
    [['tar', '-xzf', '{p}', '-C', '{q}']],
    [['make', '-j', '{q}', '{p}']],
    [['make', 'all', 'A=1']],
    [['npm', 'run', '{p}']],
    [['ssh', '{p}', 'uptime']],
    [['ssh', '-p', '{q}', '{p}', 'uptime']],
    [['rsync', '-a', '-e', 'ssh', '{p}', 'b']],
    [['vim', '+10', '{p}']],
    [['apt-get', 'install', 'make', 'awk', '{p}']],
    [['gh', 'pr', 'view', '-c', '{p}']],
    [['psql', '-h', '{p}']],
  ])('is told from a value: %j', (argv) => {
    expect(parameterInCode(argv)).toBeUndefined()
  })
})
