import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { resolveCwd } from './resolve-cwd.ts'

let base: string
let workspace: string

beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'sandwire-cwd-')))
  workspace = join(base, 'work')
  mkdirSync(join(workspace, 'src', '..deep'), { recursive: true })
  mkdirSync(join(base, 'work-evil'))
  writeFileSync(join(workspace, 'file'), '')
  symlinkSync('/etc', join(workspace, 'out'))
  symlinkSync('src', join(workspace, 'in'))
  symlinkSync('loop', join(workspace, 'loop'))
})
afterAll(() => rmSync(base, { recursive: true }))

test('resolveCwd finds directories inside the workspace', () => {
  expect(resolveCwd(workspace, undefined)).toBe(workspace)
  expect(resolveCwd(workspace, '')).toBe(workspace)
  expect(resolveCwd(workspace, '.')).toBe(workspace)
  expect(resolveCwd(workspace, 'src')).toBe(join(workspace, 'src'))
  expect(resolveCwd(workspace, 'src/../src')).toBe(join(workspace, 'src'))
  expect(resolveCwd(workspace, join(workspace, 'src'))).toBe(join(workspace, 'src'))
  expect(resolveCwd(workspace, 'in')).toBe(join(workspace, 'src'))
  expect(resolveCwd(workspace, 'src/..deep')).toBe(join(workspace, 'src', '..deep'))
})

test.each([
  '..',
  '../work-evil',
  '/',
  '/etc',
  'out',
  'out/ssl',
  'src/../../work-evil',
  'missing',
  'file',
  'loop',
  'a\0b',
])('resolveCwd refuses %j', (cwd) => {
  expect(() => resolveCwd(workspace, cwd)).toThrow(
    expect.objectContaining({ code: 'path_refused', message: expect.stringContaining('Cannot use cwd') }),
  )
})
