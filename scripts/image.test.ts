import { expect, test } from 'bun:test'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

test('a build without its base image suggests --debootstrap, and leaves no files', () => {
  const tools = mkdtempSync(path.join(tmpdir(), 'sandwire-tools-'))
  try {
    const engine = path.join(tools, 'docker')
    writeFileSync(engine, '#!/bin/sh\n[ "$1" = info ] || { echo "no such host" >&2; exit 1; }\n')
    chmodSync(engine, 0o755)
    const scratch = path.join(tools, 'scratch')
    mkdirSync(scratch)
    const { exitCode, stdout, stderr } = Bun.spawnSync(
      [process.execPath, path.join(import.meta.dir, 'image.ts')],
      { env: { ...process.env, PATH: `${tools}:${process.env['PATH']}`, TMPDIR: scratch } },
    )
    expect([exitCode, stdout.toString()]).toEqual([1, ''])
    expect(stderr.toString()).toContain('no such host')
    expect(readdirSync(scratch)).toEqual([])
    expect(stderr.toString()).toMatch(/\nhint: [^\n]*--debootstrap[^\n]*\n$/)
  } finally {
    rmSync(tools, { recursive: true })
  }
})
