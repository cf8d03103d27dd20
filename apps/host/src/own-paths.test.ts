import { expect, test } from 'bun:test'
import path from 'node:path'
import { findOwnPaths } from './own-paths.ts'

test('what this program runs from or believes: its code, packages, executable, list of servers and sockets', () => {
  const places = findOwnPaths({ env: {}, home: '/home/me', uid: 1000 })
  const isCovered = (file: string): boolean =>
    places.some((place) => file === place || file.startsWith(`${place}/`))
  expect(isCovered(import.meta.path)).toBe(true)
  expect(isCovered(Bun.resolveSync('miniflare', import.meta.dir))).toBe(true)
  expect(isCovered(process.execPath)).toBe(true)
  expect(isCovered(path.resolve(import.meta.dir, '../../sandboxd/src/main.ts'))).toBe(true)
  expect(isCovered('/home/me/.config/sandwire/servers.json')).toBe(true)
  expect(isCovered('/tmp/sandwire-1000/x')).toBe(true)
})
