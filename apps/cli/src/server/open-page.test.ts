import { expect, test } from 'bun:test'
import { pageOpener } from './open-page.ts'

test.each([
  [{ DISPLAY: ':0' }, 'linux', 'xdg-open'],
  [{ WAYLAND_DISPLAY: 'wayland-0' }, 'linux', 'xdg-open'],
  [{ DISPLAY: '' }, 'linux', undefined],
  [{}, 'linux', undefined],
  [{}, 'darwin', 'open'],
  [{ SSH_CONNECTION: 'x' }, 'darwin', undefined],
  [{ DISPLAY: ':0' }, 'win32', undefined],
])('pageOpener for %j on %s is %p', (env, platform, opener) => expect(pageOpener(env, platform)).toBe(opener))
