import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { brotliDecompressSync, gunzipSync } from 'node:zlib'
import { expect, test } from 'bun:test'
import { prepareWorkbench } from './workbench-files.ts'

const ROOT = path.resolve(import.meta.dir, '../../../..')

test('prepareWorkbench builds for production once, in any environment', async () => {
  const environment = process.env['NODE_ENV']
  process.env['NODE_ENV'] = 'test'
  const cache = mkdtempSync(path.join(tmpdir(), 'workbench-cache-'))
  try {
    const lines: string[] = []
    const folder = await prepareWorkbench(ROOT, cache, (line) => lines.push(line))
    const scripts = readdirSync(path.join(folder, 'assets')).filter((name) => name.endsWith('.js'))
    expect(scripts).not.toEqual([])
    for (const name of scripts)
      expect([name, readFileSync(path.join(folder, 'assets', name), 'utf8').includes('jsxDEV')]).toEqual([
        name,
        false,
      ])
    const page = readFileSync(path.join(folder, 'index.html'), 'utf8')
    const files = ['js', 'css'].map((end) => new RegExp(`assets/[^"]+\\.${end}`).exec(page)?.[0] ?? '')
    for (const name of ['index.html', ...files]) {
      const bytes = readFileSync(path.join(folder, name))
      expect(brotliDecompressSync(readFileSync(path.join(folder, `${name}.br`)))).toEqual(bytes)
      expect(gunzipSync(readFileSync(path.join(folder, `${name}.gz`)))).toEqual(bytes)
    }
    expect(await prepareWorkbench(ROOT, cache, (line) => lines.push(line))).toBe(folder)
    expect(lines).toEqual(['Building the workbench …'])
    expect(process.env['NODE_ENV']).toBe('test')
  } finally {
    rmSync(cache, { recursive: true, force: true })
    if (environment === undefined) delete process.env['NODE_ENV']
    else process.env['NODE_ENV'] = environment
  }
})
