import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { procReadOnlyBindings } from './system-files.ts'

test('binds folders and writable files of /proc that belong to no process (threat T39)', () => {
  const root = mkdtempSync(path.join(tmpdir(), 'proc-'))
  mkdirSync(path.join(root, 'sys'))
  mkdirSync(path.join(root, '42'))
  writeFileSync(path.join(root, 'sysrq-trigger'), '', { mode: 0o200 })
  writeFileSync(path.join(root, 'cpuinfo'), '', { mode: 0o444 })
  symlinkSync('42', path.join(root, 'self'))
  expect(procReadOnlyBindings(root).sort((a, b) => a.to.localeCompare(b.to))).toEqual([
    { from: path.join(root, 'sys'), to: '/proc/sys' },
    { from: path.join(root, 'sysrq-trigger'), to: '/proc/sysrq-trigger' },
  ])
  rmSync(root, { recursive: true })
})
