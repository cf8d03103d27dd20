import { expect, test } from 'bun:test'
import { Appearance, DEFAULT_LOOK } from './look.ts'
import { LIGHT } from './palette.ts'

test('what is not given is as usual', () => {
  expect(new Appearance({ fontSize: 20 }).look).toEqual({ ...DEFAULT_LOOK, fontSize: 20 })
})

test('a part of a look changes that part alone', () => {
  const appearance = new Appearance({ fontSize: 20, cursorBlink: false })
  appearance.change({ palette: LIGHT })
  expect(appearance.look).toEqual({ ...DEFAULT_LOOK, fontSize: 20, cursorBlink: false, palette: LIGHT })
  expect(appearance.options).toMatchObject({ theme: LIGHT, fontSize: 20, screenReaderMode: false })
})

test('a cursor that is not to blink does not, whoever may type', () => {
  const appearance = new Appearance({ cursorBlink: false })
  appearance.isReadOnly = true
  appearance.isReadOnly = false
  expect(appearance.options).toMatchObject({ disableStdin: false, cursorBlink: false })
})

test('a cursor blinks only for who may type, also after another look', () => {
  const appearance = new Appearance({})
  expect(appearance.options).toMatchObject({ disableStdin: false, cursorBlink: true })
  appearance.isReadOnly = true
  appearance.change({ fontSize: 20 })
  expect(appearance.options).toMatchObject({ disableStdin: true, cursorBlink: false })
  appearance.isReadOnly = false
  expect(appearance.options).toMatchObject({ disableStdin: false, cursorBlink: true })
})
