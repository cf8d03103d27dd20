import { expect, test } from 'bun:test'
import path from 'node:path'
import { findOwnPaths } from './own-paths.ts'

test('lists the paths that this program runs or trusts: code, packages, executable, list of servers, sockets', () => {
  const paths = findOwnPaths({ env: {}, home: '/home/me', uid: 1000 })
  const isCovered = (file: string): boolean => paths.some((own) => file === own || file.startsWith(`${own}/`))
  expect(isCovered(import.meta.path)).toBe(true)
  expect(isCovered(Bun.resolveSync('miniflare', import.meta.dir))).toBe(true)
  expect(isCovered(process.execPath)).toBe(true)
  expect(isCovered(path.resolve(import.meta.dir, '../../sandboxd/src/main.ts'))).toBe(true)
  expect(isCovered('/home/me/.config/sandwire/servers.json')).toBe(true)
  expect(isCovered('/tmp/sandwire-1000/x')).toBe(true)
})
