/**
 * The line for a terminal that leads to what was shared, the same as the command line's own: a viewer starts nothing, so for
 * one of a whole sandbox it only shows what there is to watch.
 */
export const WAY_THERE_JS = `const wayThere = ({ sandbox, session, role }) => {
  const url = location.origin
  const isViewer = role === 'viewer'
  const words = session !== null
    ? url + ' --session ' + session + (isViewer ? ' --role viewer' : '')
    : isViewer ? 'sessions ' + sandbox + ' --url ' + url : url + ' --sandbox ' + sandbox + ' --no-create'
  return { line: 'npx sbx-stdio ' + words, leads: session !== null || !isViewer }
}
`
