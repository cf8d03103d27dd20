import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

/** Colours come from the page's own variables, so that light and dark need no second theme. */
const look = EditorView.theme({
  '&': {
    height: '100%',
    backgroundColor: 'var(--bg)',
    color: 'var(--text)',
    fontSize: 'var(--editor-font-size, 13px)',
  },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-gutters': { backgroundColor: 'var(--bg)', color: 'var(--text-dim)', border: '0' },
  '.cm-activeLine, .cm-activeLineGutter': {
    backgroundColor: 'color-mix(in srgb, var(--bg-hover) 45%, transparent)',
  },
  '.cm-cursor': { borderLeftColor: 'var(--accent)' },
  '&.cm-focused': { outline: 'none' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--bg-active)',
  },
  '.cm-panels': { backgroundColor: 'var(--bg-raised)', color: 'var(--text)' },
  '.cm-textfield, .cm-button': {
    backgroundImage: 'none',
    backgroundColor: 'var(--bg)',
    color: 'var(--text)',
  },
  // The sign that it has by itself is in few fonts.
  '.cm-collapsedLines::before, .cm-collapsedLines::after': { content: '"⋯"' },
  '.cm-searchMatch': { backgroundColor: 'color-mix(in srgb, var(--accent) 35%, transparent)' },
})

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: 'var(--code-keyword)' },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: 'var(--code-string)' },
  { tag: [tags.comment, tags.meta], color: 'var(--text-dim)', fontStyle: 'italic' },
  { tag: [tags.number, tags.bool, tags.null, tags.atom], color: 'var(--code-number)' },
  {
    tag: [tags.function(tags.variableName), tags.function(tags.propertyName)],
    color: 'var(--code-function)',
  },
  { tag: [tags.typeName, tags.className, tags.tagName], color: 'var(--code-type)' },
  { tag: [tags.heading, tags.strong], fontWeight: 'bold' },
  { tag: [tags.link, tags.url], color: 'var(--blue)' },
  { tag: tags.invalid, color: 'var(--bad)' },
])

export const THEME: Extension = [look, syntaxHighlighting(colours)]
