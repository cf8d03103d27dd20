import { expect, test } from 'bun:test'
import { findAccount } from './account.ts'

const PASSWD =
  'root:x:0:0:root:/root:/bin/bash\n# comment\nbroken\nada:x:1000:1000:Ada,,,:/home/ada:\nnobody:x:65534:65534::/:/usr/sbin/nologin\n'

test('findAccount reads name, home and shell by number', () => {
  expect(findAccount(PASSWD, 0)).toEqual({ name: 'root', home: '/root', shell: '/bin/bash' })
})

test('findAccount means /bin/sh when the shell is empty', () => {
  expect(findAccount(PASSWD, 1000)).toEqual({ name: 'ada', home: '/home/ada', shell: '/bin/sh' })
})

test('findAccount finds nothing for an unknown number', () => {
  expect(findAccount(PASSWD, 7)).toBeUndefined()
})
