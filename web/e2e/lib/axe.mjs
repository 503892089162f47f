// Accessibility, as axe sees it.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

// looks are the browsers in which pages are examined.
export const looks = {
  light: {},
  dark: { dark: true },
  'on a phone': { width: 390, height: 844 },
}

// violations returns the serious violations of WCAG 2.2 A and AA.
export async function violations(page) {
  await page.evaluate(axe)
  const { violations } = await page.evaluate(() =>
    window.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }),
  )
  return violations
    .filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .map((v) => `${v.id}: ${v.nodes.map((n) => `${n.html} (${n.failureSummary?.replaceAll('\n', ' ')})`).join('; ')}`)
}
