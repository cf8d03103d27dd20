import { expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createBaseEnv, findAccount, takeEnvFile } from './process-env.ts'

const account = { name: 'ada', home: '/home/ada', shell: '/bin/zsh' }

test('createBaseEnv inherits only the listed variables', () => {
  const env = createBaseEnv(
    {
      PATH: '/bin',
      HOME: '/h',
      SECRET_TOKEN: 'x',
      LD_PRELOAD: 'y',
      LANG: 'de_DE.UTF-8',
    },
    account,
  )
  expect(env).toMatchObject({ PATH: '/bin', HOME: '/h', LANG: 'de_DE.UTF-8' })
  expect(Object.keys(env)).not.toContain('SECRET_TOKEN')
  expect(Object.keys(env)).not.toContain('LD_PRELOAD')
})

test('createBaseEnv adds the variables that a shell needs', () => {
  const env = createBaseEnv({}, account)
  expect(env).toMatchObject({
    HOME: '/home/ada',
    USER: 'ada',
    LOGNAME: 'ada',
    SHELL: '/bin/zsh',
    LANG: 'C.UTF-8',
  })
  expect(env['PATH']).toBeString()
})

test('createBaseEnv describes the other user to processes of that user', () => {
  const own = { PATH: '/bin', HOME: '/root', USER: 'root', LOGNAME: 'root', SHELL: '/bin/bash' }
  expect(createBaseEnv(own, account, true)).toMatchObject({
    PATH: '/bin',
    HOME: '/home/ada',
    USER: 'ada',
    LOGNAME: 'ada',
    SHELL: '/bin/zsh',
  })
})

const PASSWD =
  'root:x:0:0:root:/root:/bin/bash\n# comment\nbroken\nada:x:1000:1000:Ada,,,:/home/ada:\nnobody:x:65534:65534::/:/usr/sbin/nologin\n'

test('findAccount reads name, home and shell by uid', () => {
  expect(findAccount(PASSWD, 0)).toEqual({ name: 'root', home: '/root', shell: '/bin/bash' })
})

test('findAccount defaults to /bin/sh', () => {
  expect(findAccount(PASSWD, 1000)).toEqual({ name: 'ada', home: '/home/ada', shell: '/bin/sh' })
})

test('findAccount finds nothing for an unknown uid', () => {
  expect(findAccount(PASSWD, 7)).toBeUndefined()
})

function withFile(text: string, check: (file: string) => void): void {
  const folder = mkdtempSync(join(tmpdir(), 'sandwire-env-'))
  const file = join(folder, 'env.json')
  writeFileSync(file, text)
  check(file)
  rmSync(folder, { recursive: true })
}

test('takeEnvFile reads an object of strings and removes the file', () => {
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
