// Browsers start no workers for pages opened from the disk, and the search of the guide is one. There, a hidden frame
// stands in for it: the same script, messages handed over as events. (The theme would fetch such a script from a server.)
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      const frame = document.createElement("iframe")
      frame.hidden = true
      document.body.append(frame)
      this.inside = frame.contentWindow
      this.inside.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      this.inside.importScripts = (...urls) => Promise.all(urls.map(each => this.load(each)))
      this.ready = this.load(url)
    }

    load(url) {
      const script = this.inside.document.createElement("script")
      return new Promise((resolve, reject) => {
        Object.assign(script, { src: url, async: false, onload: resolve, onerror: reject })
        this.inside.document.body.append(script)
      })
    }

    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })))
    }
  }
