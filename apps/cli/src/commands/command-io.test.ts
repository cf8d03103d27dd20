import { expect, test } from 'bun:test'
import { editLine, browserCommand } from './command-io.ts'

test.each([
  ['abc', 'abc'],
  ['ab\x7fc\x08d', 'ad'],
  ['wrong\x15right', 'right'],
  ['\x7f\x7fa\x1bb\x00', 'ab'],
])('editLine turns %j into %j', (typed, line) => {
  const edited = [...Buffer.from(typed)].reduce<readonly number[]>(editLine, [])
  expect(Buffer.from(edited).toString()).toBe(line)
})

test.each([
  [{ DISPLAY: ':0' }, 'linux', 'xdg-open'],
  [{ WAYLAND_DISPLAY: 'wayland-0' }, 'linux', 'xdg-open'],
  [{ DISPLAY: '' }, 'linux', undefined],
  [{}, 'linux', undefined],
  [{}, 'darwin', 'open'],
  [{ SSH_CONNECTION: 'x' }, 'darwin', undefined],
  [{ DISPLAY: ':0' }, 'win32', undefined],
])('browserCommand for %j on %s is %p', (env, platform, opener) =>
  expect(browserCommand(env, platform)).toBe(opener),
)
