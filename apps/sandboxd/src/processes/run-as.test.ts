import { expect, test } from 'bun:test'
import { createLauncher } from './run-as.ts'

const launch = createLauncher(['/bin/setpriv', '--reuid=1000', '--'], '/usr/bin/env')

test('a launcher puts its prefix before the command and keeps its environment', () => {
  expect(launch(['ls', '-l'], { PATH: '/bin', TERM: 'xterm' })).toEqual({
    argv: ['/bin/setpriv', '--reuid=1000', '--', 'ls', '-l'],
    env: { PATH: '/bin', TERM: 'xterm' },
  })
})

test.each([
  'LD_PRELOAD',
  'LD_AUDIT',
  'LD_LIBRARY_PATH',
  'GLIBC_TUNABLES',
  'GCONV_PATH',
  'LOCPATH',
  'MALLOC_CHECK_',
  'NLSPATH',
  'TMPDIR',
  'RES_OPTIONS',
  'MUSL_LOCPATH',
])('a launcher withholds %s from its prefix and sets it for the command', (name) => {
  expect(launch(['ls'], { PATH: '/bin', [name]: '/x y' })).toEqual({
    argv: ['/bin/setpriv', '--reuid=1000', '--', '/usr/bin/env', `${name}=/x y`, 'ls'],
    env: { PATH: '/bin' },
  })
})

test.each(['MY_LD_PRELOAD', 'GCONV_PATHS', 'OLD_PATH', 'LANG', 'TZ'])(
  'a launcher passes %s on as it is',
  (name) => {
    expect(launch(['ls'], { [name]: 'x' }).env).toEqual({ [name]: 'x' })
  },
)

test('a launcher executes a command with = in its name', () => {
  const { argv, env } = createLauncher(['/usr/bin/env'], '/usr/bin/env')(['/no/such=name', 'a'], {
    LD_BIND_NOW: '1',
  })
  const run = Bun.spawnSync([...argv], { env: { ...env }, stderr: 'pipe' })
  expect(run.stderr.toString()).toContain('/no/such=name')
  expect(run.exitCode).toBe(127)
})
