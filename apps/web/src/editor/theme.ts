import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import type { Extension } from '@codemirror/state'
import { EditorView } from '@codemirror/view'
import { tags } from '@lezer/highlight'

/** Colors come from the page's CSS variables, so that one theme serves light and dark. */
const surface = EditorView.theme({
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
  // The default sign is missing in many fonts.
  '.cm-collapsedLines::before, .cm-collapsedLines::after': { content: '"⋯"' },
  '.cm-searchMatch': { backgroundColor: 'color-mix(in srgb, var(--accent) 35%, transparent)' },
})

/** Minimum size of a touch target. */
const TARGET = '24px'

/** Search and dialog bars match the page around the editor. */
const bars = EditorView.theme({
  '.cm-panels': {
    backgroundColor: 'var(--bg-raised)',
    color: 'var(--text)',
    fontFamily: 'var(--font)',
    fontSize: '13px',
  },
  '.cm-panels.cm-panels-top': { borderBottom: '1px solid var(--line)' },
  '.cm-panels.cm-panels-bottom': { borderTop: '1px solid var(--line)' },
  '.cm-panel.cm-search, .cm-panel.cm-dialog': { padding: '4px 36px 4px 8px' },
  '.cm-panel.cm-search label, .cm-panel.cm-dialog label': {
    display: 'inline-flex',
    alignItems: 'center',
    gap: '4px',
    minHeight: TARGET,
    fontSize: 'inherit',
    verticalAlign: 'middle',
  },
  '.cm-panel .cm-textfield, .cm-panel .cm-button': {
    minHeight: '28px',
    padding: '2px 8px',
    border: '1px solid var(--line)',
    borderRadius: 'var(--radius)',
    backgroundImage: 'none',
    fontSize: 'inherit',
    verticalAlign: 'middle',
  },
  '.cm-panel .cm-textfield': { backgroundColor: 'var(--bg)', color: 'var(--text)' },
  '.cm-panel .cm-button': { backgroundColor: 'var(--bg-raised)', color: 'var(--text)' },
  '.cm-panel .cm-button:hover': { backgroundColor: 'var(--bg-hover)' },
  '.cm-panel.cm-search [name=close], .cm-panel .cm-dialog-close': {
    top: '4px',
    right: '6px',
    justifyContent: 'center',
    minWidth: TARGET,
    minHeight: TARGET,
    color: 'var(--text-dim)',
    fontSize: '16px',
  },
})

const colors = HighlightStyle.define([
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

export const THEME: Extension = [surface, bars, syntaxHighlighting(colors)]
