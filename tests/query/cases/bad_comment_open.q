cluster /* . Function
