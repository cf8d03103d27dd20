import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { takeEnvFile } from './env-file.ts'

function withFile(text: string, check: (file: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-env-'))
  const file = join(folder, 'env.json')
  writeFileSync(file, text)
  check(file)
  rmSync(folder, { recursive: true })
}

test('takeEnvFile reads an object of texts and removes the file', () => {
  withFile('{"A":"1","B_2":"é\\n"}', (file) => {
    expect(takeEnvFile(file)).toEqual({ isOk: true, env: { A: '1', B_2: 'é\n' } })
    expect(existsSync(file)).toBe(false)
  })
})

test.each(['', '[]', 'null', '{"A":1}', '{"A=B":"x"}', '{"":"x"}', '{"A":"\\u0000"}', '{"secret":'])(
  'takeEnvFile refuses %j without quoting it',
  (text) => {
    withFile(text, (file) => {
      const taken = takeEnvFile(file)
      expect(taken.isOk).toBe(false)
      expect(JSON.stringify(taken)).not.toContain('secret')
      expect(existsSync(file)).toBe(true)
    })
  },
)

test('takeEnvFile refuses a link and a missing file', () => {
  withFile('{}', (file) => {
    symlinkSync(file, `${file}.link`)
    expect(takeEnvFile(`${file}.link`).isOk).toBe(false)
    expect(takeEnvFile(`${file}.none`).isOk).toBe(false)
  })
})
