/* Keeps the live part of a page up to date: what the server sends replaces only what differs, so that
   focus, selection and opened details stay. */
(function () {
  "use strict";

  var live = document.getElementById("rh-live");
  var notice = document.getElementById("rh-notice");
  if (!live || !window.EventSource) {
    return;
  }
  var AGAIN_MS = [1000, 2000, 5000, 10000, 15000];
  var SILENT_MS = 45000; /* three beats of the server */
  var OLD = " What is shown is old. Trying again.";
  var source = null;
  var failures = 0;
  var timer = null;
  var silence = null;

  function say(text) {
    if (notice.textContent !== text) {
      notice.textContent = text;
    }
    notice.hidden = !text;
    live.classList.toggle("rh-stale", Boolean(text));
  }

  function hear() {
    failures = 0;
    clearTimeout(silence);
    silence = setTimeout(reopen, SILENT_MS);
  }

  function close() {
    clearTimeout(timer);
    clearTimeout(silence);
    if (source) {
      source.close();
      source = null;
    }
  }

  function reopen() {
    close();
    if (document.hidden) {
      return;
    }
    if (failures > 0) {
      say("Flower does not answer." + OLD);
    }
    timer = setTimeout(open, AGAIN_MS[Math.min(failures, AGAIN_MS.length - 1)]);
    failures += 1;
  }

  function open() {
    close();
    source = new EventSource(live.dataset.live);
    source.onopen = hear;
    source.onerror = reopen;
    source.addEventListener("beat", hear);
    source.addEventListener("view", function (event) {
      var news = JSON.parse(event.data);
      hear();
      say("");
      document.title = news.title;
      update(live, new DOMParser().parseFromString(news.html, "text/html").body);
    });
    source.addEventListener("away", function (event) {
      hear();
      say(JSON.parse(event.data).text + OLD);
    });
    source.addEventListener("gone", function (event) {
      close();
      say(JSON.parse(event.data).text);
    });
  }

  function keyOf(node) {
    return node.nodeType === Node.ELEMENT_NODE ? node.getAttribute("data-key") || node.id : "";
  }

  /* Make the children of `shown` those of `fresh`. */
  function update(shown, fresh) {
    var keyed = {};
    Array.prototype.forEach.call(shown.childNodes, function (node) {
      if (keyOf(node)) {
        keyed[keyOf(node)] = node;
      }
    });
    var at = shown.firstChild;
    Array.prototype.slice.call(fresh.childNodes).forEach(function (node) {
      var key = keyOf(node);
      var same = key && keyed[key];
      if (same && same.nodeName === node.nodeName) {
        if (same === at) {
          at = at.nextSibling;
        } else {
          shown.insertBefore(same, at);
        }
        updateNode(same, node);
      } else if (!key && at && !keyOf(at) && at.nodeName === node.nodeName) {
        var next = at.nextSibling;
        updateNode(at, node);
        at = next;
      } else {
        shown.insertBefore(document.importNode(node, true), at);
      }
    });
    while (at) {
      var rest = at.nextSibling;
      shown.removeChild(at);
      at = rest;
    }
  }

  function updateNode(shown, fresh) {
    if (shown.isEqualNode(fresh)) {
      return;
    }
    if (shown.nodeType !== Node.ELEMENT_NODE) {
      shown.nodeValue = fresh.nodeValue;
      return;
    }
    Array.prototype.slice.call(shown.attributes).forEach(function (attribute) {
      var kept = shown.nodeName === "DETAILS" && attribute.name === "open";
      if (!kept && !fresh.hasAttribute(attribute.name)) {
        shown.removeAttribute(attribute.name);
      }
    });
    Array.prototype.forEach.call(fresh.attributes, function (attribute) {
      if (shown.getAttribute(attribute.name) !== attribute.value) {
        shown.setAttribute(attribute.name, attribute.value);
      }
    });
    update(shown, fresh);
  }

  /* A browser opens six connections to a site: hidden pages leave theirs to others. */
  document.addEventListener("visibilitychange", function () {
    if (document.hidden) {
      close();
    } else if (!source) {
      failures = 0;
      open();
    }
  });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", function (event) {
    if (event.persisted) {
      open();
    }
  });
  open();
})();
