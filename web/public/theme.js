// Before the first paint, so that nobody who works in the dark sees a flash.
;(function () {
  var chosen = null
  try {
    chosen = localStorage.getItem('parley.theme')
  } catch (e) {}
  var dark = chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
  document.documentElement.dataset.theme = dark ? 'dark' : 'light'
})()
